// Formats a command line that can be pasted into a shell.
import { quoteShell } from './quote-shell.ts'

/** Quotes words where a shell needs it. Words that are empty or undefined are left out. */
export const formatCommandLine = (...words: (string | false | null | undefined)[]): string =>
  words
    .filter((word): word is string => typeof word === 'string' && word !== '')
    .map(quoteShell)
    .join(' ')
