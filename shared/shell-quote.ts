// Quotes text for a POSIX shell.

/** Quotes `word` if it needs quotes. */
export const shellQuote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : shellQuoteAlways(word)

export const shellQuoteAlways = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
