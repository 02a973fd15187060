// Removes from text of a box what could control a terminal or hide text from a person.

const ESC = '\u001b'
const BEL = '\u0007'
/** The control characters of 8 bits that begin a sequence, and end a string. */
const [CSI, STRING_END] = ['\u009b', '\u009c']

/** Sequences such as colours and window titles (ECMA-48). A string without its end stays, without its escape character. */
const SEQUENCES = new RegExp(
  [
    `(?:${ESC}\\[|${CSI})[0-?]*[ -/]*[@-~]`,
    `${ESC}[\\]PX^_][^${BEL}${ESC}${STRING_END}]*(?:${BEL}|${ESC}\\\\|${STRING_END})`,
    `${ESC}[ -/]*[0-OQ-WYZ\\\\\`-~]`,
  ].join('|'),
  'g',
)

/** Format characters include those that change the direction of text, and invisible tags. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu
/** Newline, tab, and the joiners of emoji and of several scripts. */
const KEPT = '\n\t\u200C\u200D'

/** Without sequences, control and format characters. Invalid bytes in a row, which are U+FFFD, are one. */
export function cleanText(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replaceAll('\r\n', '\n')
    .replaceAll('\r', '\n')
    .replace(UNPRINTABLE, (character) => (KEPT.includes(character) ? character : ''))
    .replace(/\uFFFD{2,}/g, '\uFFFD')
}

/** The same for output: of a line that was overwritten, such as a progress bar, the final state remains. */
export const cleanOutput = (text: string): string =>
  cleanText(text.replace(SEQUENCES, '').split('\n').map(getFinalState).join('\n'))

const getFinalState = (line: string): string =>
  line.includes('\r')
    ? (line
        .split('\r')
        .filter((part) => part !== '')
        .at(-1) ?? '')
    : line

/** One line, such as a name or a message, of at most `maxChars`. */
export function cleanLine(text: string, maxChars = 500): string {
  const line = cleanText(text)
    .replace(/[\n\t]+/g, ' ')
    .trim()
  return line.length <= maxChars ? line : `${line.slice(0, maxChars - 1).replace(/\p{Cs}$/u, '')}…`
}
