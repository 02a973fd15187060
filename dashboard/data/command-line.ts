// Formats a command line that can be pasted into a shell.

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/

const quote = (word: string): string => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** Quotes words where a shell needs it. Words that are empty or undefined are left out. */
export const formatCommandLine = (...words: (string | false | null | undefined)[]): string =>
  words
    .filter((word): word is string => typeof word === 'string' && word !== '')
    .map(quote)
    .join(' ')
