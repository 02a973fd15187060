// Splits source code into comments and code without literals, so that a check of the language can skip the texts of strings.

export type CodeParts = {
  /** The comments with the number of the line of each. A comment of several lines has one entry for each line. */
  comments: Line[]
  /** The code of each line, without comments, strings and regular expressions. */
  code: Line[]
}

export type Line = { line: number; text: string }

const LINE_COMMENT = /\/\/.*/
const BLOCK_COMMENT = /\/\*[\s\S]*?\*\//
const QUOTED = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/
/** Of nested templates only the innermost text is taken for code. */
const TEMPLATE = /`(?:[^`\\]|\\[\s\S])*`/
/** A slash after an operator or a bracket starts a regular expression, every other slash is a division. */
const REGULAR_EXPRESSION =
  /(?<=(?:[=(,:!&|?[{;>\n]|\breturn)\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/

const C_LIKE = join(LINE_COMMENT, BLOCK_COMMENT, QUOTED, TEMPLATE, REGULAR_EXPRESSION)
const SHELL = join(/(?<=^|\s)#.*/m, QUOTED)

function join(...patterns: RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join('|'), 'gm')
}

/** Shell is the language of files whose name ends in .sh or in no suffix, all others have comments as in C. */
export function splitCode(file: string, source: string): CodeParts {
  const isShell = /(\.sh|\/[^.]+)$/.test(file)
  const text = source.replace(/^#!.*/, '')
  const comments: Line[] = []
  const code = text.replace(isShell ? SHELL : C_LIKE, (part, offset: number) => {
    const isComment = isShell ? part.startsWith('#') : /^\/[/*]/.test(part)
    if (isComment) comments.push(...toLines(part, countLines(text.slice(0, offset))))
    return part.replace(/[^\n]+/g, ' ')
  })
  return { comments, code: toLines(code, 1) }
}

const countLines = (text: string): number => text.split('\n').length

const toLines = (text: string, first: number): Line[] =>
  text.split('\n').map((line, index) => ({ line: first + index, text: line }))
