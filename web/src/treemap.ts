// SPDX-License-Identifier: Apache-2.0
// Rectangles whose areas are weights, as square as may be: Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000.

export interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

function worst(row: number[], side: number): number {
  const sum = row.reduce((a, b) => a + b, 0);
  return Math.max((side * side * Math.max(...row)) / (sum * sum), (sum * sum) / (side * side * Math.min(...row)));
}

// Of weights in descending order, all above 0: their areas, in the same order.
export function treemap(weights: number[], area: Area): Area[] {
  const all = weights.reduce((a, b) => a + b, 0);
  const sizes = weights.map((weight) => (weight / all) * area.width * area.height);
  const areas: Area[] = [];
  let { x, y, width, height } = area;
  for (let at = 0; at < sizes.length; ) {
    const side = Math.min(width, height);
    const row = [sizes[at]!];
    while (at + row.length < sizes.length && worst([...row, sizes[at + row.length]!], side) <= worst(row, side)) row.push(sizes[at + row.length]!);
    const sum = row.reduce((a, b) => a + b, 0);
    const thickness = sum / side;
    let along = 0;
    for (const size of row) {
      const length = size / thickness;
      areas.push(width >= height ? { x, y: y + along, width: thickness, height: length } : { x: x + along, y, width: length, height: thickness });
      along += length;
    }
    if (width >= height) [x, width] = [x + thickness, width - thickness];
    else [y, height] = [y + thickness, height - thickness];
    at += row.length;
  }
  return areas;
}
