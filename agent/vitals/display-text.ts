// Text of the box in reports: process names and command lines have any bytes.
import { replaceControlCharacters } from '../../shared/report-limits.ts'

/** The first `maxChars` UTF-16 units, in which each control or unassigned character is replaced. */
export const displayText = (text: string, maxChars: number): string =>
  replaceControlCharacters(text.slice(0, maxChars))
