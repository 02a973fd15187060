// What a person or a script reads: tables, ages, JSON. Results go to stdout, talk to stderr.

/** Without control characters: what a box or a peer sent must not drive the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => (character === '\n' ? ' ' : '\uFFFD'))
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`)
export const print = (line: string): void => void process.stdout.write(`${line}\n`)
export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2))

/** Of the last column, on a terminal however narrow. */
const LEAST_LAST = 20

/**
 * Columns as wide as their widest cell, two spaces between, nothing after the last. Lines are cut at `width`, unless
 * that left nothing of the last column to read.
 */
export function table(rows: readonly (readonly string[])[], width = Number.POSITIVE_INFINITY): string {
  const cells = rows.map((row) => row.map(printable))
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  )
  const least = widths.slice(0, -1).reduce((sum, column) => sum + column + 2, LEAST_LAST)
  return cells
    .map((row) => {
      const line = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
      return cut(line.trimEnd(), Math.max(width, least))
    })
    .join('\n')
}

/** Of the terminal; no end where it is none: a script gets all. */
export const terminalWidth = (): number =>
  process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY

function cut(line: string, width: number): string {
  if (line.length <= width) return line
  const characters = [...line]
  return characters.length <= width ? line : `${characters.slice(0, width - 1).join('')}…`
}

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
] as const

/** `now` is milliseconds since the epoch; a clock that runs behind gives 0s. */
export function age(timestamp: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(timestamp)) / 1000))
  for (const [unit, size] of UNITS) if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`
  return `${seconds}s`
}

/** As a person reads it, two units at most. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  let rest = Math.floor(seconds)
  const parts: string[] = []
  for (const [unit, size] of [...UNITS, ['s', 1] as const]) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0 || parts.length > 0) parts.push(`${count}${unit}`)
  }
  return parts.slice(0, 2).join(' ')
}

/** One argument is a line for the shell as it is; several are words, each kept whole. */
export function commandLine(words: readonly string[]): string {
  const [only] = words
  return words.length === 1 && only !== undefined ? only : words.map(quote).join(' ')
}

/** A word as the shell reads it back unchanged. */
export const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoteLine(word))

/** Always in quotes, as a line for the shell on the box is written. */
export const quoteLine = (line: string): string => `'${line.replaceAll("'", `'\\''`)}'`
