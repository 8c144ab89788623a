/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an address in the user's browser. */
#pragma once

/*
 * Through a file that only this user can read, since every user sees what a command was started
 * with, and the address has the token. Returns the file's path, to be removed and freed when the
 * page was opened, or NULL: there is no screen, or no xdg-open.
 */
char *browser_open(const char *address);
