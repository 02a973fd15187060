// Formats an argument for the shell, in the commands that a page shows.

/** `a b` → `'a b'`. */
export const quoteShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
