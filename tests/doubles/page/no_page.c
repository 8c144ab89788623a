/* SPDX-License-Identifier: Apache-2.0 */
/* What web/build.py writes when it cannot build the page, in place of the page that it has built.
 */
#include "page/assets.h"

const struct page_part page_single_head, page_single_tail;
const struct page_asset page_assets[] = {{0}};
const char page_missing[] = "npm is not installed and PyPI gave none";
