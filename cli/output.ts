// What a person or a script reads: tables, ages, JSON. Results go to stdout, talk to stderr.

/** Without control characters: what a box or a peer sent must not drive the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => (character === '\n' ? ' ' : '\uFFFD'))
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`)
export const print = (line: string): void => void process.stdout.write(`${line}\n`)
export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2))

/** Columns as wide as their widest cell, two spaces between, nothing after the last. */
export function table(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(printable))
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  )
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
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

/** One argument is a line for the shell as it is; several are words, each kept whole. */
export function commandLine(words: readonly string[]): string {
  const [only] = words
  return words.length === 1 && only !== undefined ? only : words.map(quote).join(' ')
}

/** A word as the shell reads it back unchanged. */
export const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
