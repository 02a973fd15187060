// Text of a coding agent for the terminal: it must not control the terminal, and stays readable.

/** Joins the characters of emoji and of several scripts. */
const JOINERS = '\u200C\u200D'

/** Replaces control and format characters, except newlines, tabs and joiners. */
export const sanitizeText = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
      character === '\n' || character === '\t' || JOINERS.includes(character) ? character : '\uFFFD',
    )

/** The first line that is not blank, truncated, and how many lines follow it. Empty for blank text. */
export function shorten(text: string, width: number): string {
  const lines = text.trim().split(/\r?\n/)
  const [first = ''] = lines
  const more = lines.length > 1 ? ` (+${lines.length - 1} lines)` : ''
  return truncate(sanitizeText(first).replaceAll('\t', ' '), width - more.length) + more
}

/** Code points, not UTF-16 units: an emoji must not be split. */
function truncate(text: string, width: number): string {
  if (text.length <= width) return text
  const characters = [...text]
  return characters.length <= width ? text : `${characters.slice(0, Math.max(1, width - 1)).join('')}…`
}

/** Names of input fields that identify what a tool does, in the order of preference. */
const MAIN_FIELDS = 'command cmd file_path filePath path pattern query url description prompt'.split(' ')

/** One line for the input of a tool: its main field, else JSON. Not sanitized. */
export function summarizeInput(input: unknown): string {
  if (input === null || input === undefined) return ''
  if (typeof input === 'string') return input
  if (typeof input !== 'object') return String(input)
  const fields = input as Record<string, unknown>
  for (const name of MAIN_FIELDS) {
    const value = fields[name]
    if (typeof value === 'string' && value.trim() !== '') return value
    if (Array.isArray(value) && value.every((word) => typeof word === 'string')) return value.join(' ')
  }
  return Object.keys(fields).length === 0 ? '' : JSON.stringify(input)
}
