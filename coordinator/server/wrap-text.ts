// Wraps long lines between words, for a terminal.

const DEFAULT_COLUMNS = 80

/**
 * Lines that start with a space, such as commands to paste, stay unchanged. A longer word stays in one line.
 * @param columns 0: the terminal does not know its width
 */
export function wrapText(text: string, columns: number): string {
  const width = columns || DEFAULT_COLUMNS
  return text
    .split('\n')
    .map((line) => (line.startsWith(' ') ? line : wrapLine(line, width)))
    .join('\n')
}

function wrapLine(line: string, width: number): string {
  const lines: string[] = []
  for (const word of line.split(' ')) {
    const current = lines.at(-1)
    if (current !== undefined && current.length + 1 + word.length <= width)
      lines[lines.length - 1] += ` ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}
