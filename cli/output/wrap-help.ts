// Wraps help pages to the width of the terminal. The sources of the help texts have lines of up to 120 characters.

const MIN_WIDTH = 40
const MAX_WIDTH = 100
/** A description beside a command or an exit code is not wrapped into fewer characters. */
const MIN_DESCRIPTION_WIDTH = 20

/** Joins and wraps the lines of a paragraph. Wraps the descriptions of indented lines; keeps other indented lines. */
export function wrapHelp(text: string, columns: number): string {
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columns))
  const lines: string[] = []
  let paragraph: string[] = []
  const flush = () => {
    if (paragraph.length > 0) lines.push(...wrapWords(paragraph.join(' '), '', width))
    paragraph = []
  }
  for (const line of text.split('\n')) {
    if (line !== '' && !line.startsWith(' ') && !isHeading(line)) paragraph.push(line)
    else {
      flush()
      lines.push(...wrapIndentedLine(line, width))
    }
  }
  flush()
  return lines.join('\n')
}

const isHeading = (line: string): boolean => line.endsWith(':') || line.startsWith('Usage: ')

/** `  name   description`: the description continues below itself. */
function wrapIndentedLine(line: string, width: number): string[] {
  const [, name = '', description = ''] = /^( +\S.*? {2,})(\S.*)$/.exec(line) ?? []
  if (line.length <= width || name === '' || width - name.length < MIN_DESCRIPTION_WIDTH) return [line]
  return wrapWords(description, name, width)
}

/** @param start of the first line; the other lines are indented by its length */
function wrapWords(text: string, start: string, width: number): string[] {
  const lines: string[] = []
  let line = start
  for (const word of text.split(' ')) {
    const isFirstWord = line.length === start.length
    if (!isFirstWord && line.length + 1 + word.length > width) {
      lines.push(line)
      line = ' '.repeat(start.length) + word
    } else line += isFirstWord ? word : ` ${word}`
  }
  return [...lines, line]
}
