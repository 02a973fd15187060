// Parses .env files by the rules of Docker Compose, with the backticks of dotenv and without interpolation. Pure. What
// would be skipped or cut is an error: a variable that is missing on the box is noticed late.
import { isEnvName } from '../arguments/options.ts'

export type EnvFile = { variables: Record<string, string> } | { line: number; problem: string }

const BLANK = /^[ \t]*(#.*)?$/
const ASSIGNMENT = /^[ \t]*(?:export[ \t]+)?([^=\s]+)[ \t]*=[ \t]*/
const COLON = /^[ \t]*(?:export[ \t]+)?\w+:([ \t]|$)/
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '"': '"',
  '\\': '\\',
  $: '$',
}
const NAME_RULE = 'a name has letters, digits and underscores only, and does not begin with a digit'

/** @param source without a byte order mark. @returns the variables, of duplicates the last one; or the first problem */
export function parseEnvFile(source: string): EnvFile {
  const text = source.replaceAll(/\r\n?/g, '\n')
  const variables: Record<string, string> = {}
  let line = 1
  for (let start = 0; start < text.length; ) {
    const assignment = readAssignment(text, start)
    if (typeof assignment === 'string') return { line, problem: assignment }
    if (assignment.name !== null) variables[assignment.name] = assignment.value
    for (const char of text.slice(start, assignment.end)) if (char === '\n') line += 1
    start = assignment.end
  }
  return { variables }
}

/** `name`: null for a blank line. `end`: offset of the next line. */
type Assignment = { name: string | null; value: string; end: number }

/** Returns a problem as text. @param start offset of the start of a line */
function readAssignment(text: string, start: number): Assignment | string {
  const line = text.slice(start, findLineEnd(text, start))
  const lineEnd = start + line.length + 1
  if (BLANK.test(line)) return { name: null, value: '', end: lineEnd }
  const [before, name] = ASSIGNMENT.exec(line) ?? []
  if (before === undefined || name === undefined)
    return COLON.test(line) ? 'write NAME=VALUE instead of NAME: VALUE' : 'this is not NAME=VALUE'
  // An object has no property of its own with the second name.
  if (!isEnvName(name) || name === '__proto__') return NAME_RULE
  const rest = line.slice(before.length)
  const isQuoted = /^["'`]/.test(rest)
  const quoted = isQuoted ? readQuoted(text, start + before.length) : null
  if (isQuoted && quoted === null) return `the value begins with ${rest[0]}, and the closing quote is missing`
  const value =
    quoted?.value ?? (before.endsWith('=') ? readUnquoted(rest) : readUnquoted(` ${rest}`).trimStart())
  if (value.includes('\0')) return 'a variable cannot contain a NUL byte'
  if (quoted === null) return { name, value, end: lineEnd }
  const end = findLineEnd(text, quoted.end)
  if (!BLANK.test(text.slice(quoted.end, end)))
    return 'there is text after the closing quote; a quote in the value needs a backslash before it'
  return { name, value, end: end + 1 }
}

function findLineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

/** A # after a space begins a comment. Without a space it is a part of the value: passwords and URLs contain it. */
function readUnquoted(text: string): string {
  const comment = text.search(/[ \t]#/)
  return text.slice(0, comment === -1 ? text.length : comment).trimEnd()
}

/** `end`: the offset after the closing quote. null: there is none. @param start offset of the opening quote */
function readQuoted(text: string, start: number): { value: string; end: number } | null {
  const quote = text[start] ?? ''
  let value = ''
  for (let index = start + 1; index < text.length; index++) {
    const char = text[index] ?? ''
    if (char === quote) return { value, end: index + 1 }
    if (char !== '\\') value += char
    else {
      index += 1
      value += readEscape(text[index] ?? '', quote)
    }
  }
  return null
}

/** Only double quotes have other escapes than that of the quote. */
function readEscape(char: string, quote: string): string {
  if (char === quote) return char
  return (quote === '"' ? ESCAPES[char] : undefined) ?? `\\${char}`
}
