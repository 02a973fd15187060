// The lines of a stream of output, with their colours. Other control characters stay in the text, and the views show them.
import { applySgr, DEFAULT_STYLE, formatClass, type Style } from './colours.ts'

export type Segment = { text: string; class: string }
export type Line = { number: number; segments: Segment[]; length: number }

const ESCAPE = '\u001b'
/**
 * Colours, the sequence that erases to the end of the line, and ends of lines. A carriage return without a line feed also
 * ends a line, so that no text is hidden by what follows it.
 */
const TOKEN = new RegExp(`${ESCAPE}\\[([\\d;:]*)m|${ESCAPE}\\[0?K|\\r?\\n|\\r`, 'g')
/** The start of a sequence whose rest may follow. */
const PARTIAL = new RegExp(`(?:${ESCAPE}(?:\\[[\\d;:]{0,64})?|\\r)$`)
/** The newest characters that are kept. The history has at most 1 MiB of a stream. */
const MAX_CHARACTERS = 2 * 1024 * 1024

export class OutputLines {
  readonly #maxCharacters: number
  #lines: Line[] = []
  #style: Style = DEFAULT_STYLE
  #class = ''
  #partial = ''
  #characters = 0
  #isLineOpen = false
  #nextNumber = 1
  #hasDropped = false

  constructor(maxCharacters = MAX_CHARACTERS) {
    this.#maxCharacters = maxCharacters
  }

  get lines(): readonly Line[] {
    return this.#lines
  }

  /** Whether the first lines were dropped, because the output is too long. */
  get hasDropped(): boolean {
    return this.#hasDropped
  }

  push(added: string): void {
    const text = this.#partial + added
    const end = text.search(PARTIAL)
    this.#partial = end === -1 ? '' : text.slice(end)
    this.#parse(end === -1 ? text : text.slice(0, end))
    this.#dropFirstLines()
  }

  /** No more output follows: what looks like the start of a sequence is text. */
  end(): void {
    if (this.#partial === '\r') this.#isLineOpen = false
    else this.#append(this.#partial)
    this.#partial = ''
  }

  #parse(text: string): void {
    let start = 0
    for (const token of text.matchAll(TOKEN)) {
      this.#append(text.slice(start, token.index))
      start = token.index + token[0].length
      if (token[1] !== undefined) {
        this.#style = applySgr(this.#style, token[1])
        this.#class = formatClass(this.#style)
      } else if (!token[0].startsWith(ESCAPE)) {
        this.#getOpenLine()
        this.#isLineOpen = false
      }
    }
    this.#append(text.slice(start))
  }

  #getOpenLine(): Line {
    const last = this.#lines.at(-1)
    if (this.#isLineOpen && last !== undefined) return last
    const line: Line = { number: this.#nextNumber, segments: [], length: 0 }
    this.#nextNumber += 1
    this.#isLineOpen = true
    this.#lines.push(line)
    return line
  }

  #append(text: string): void {
    if (text === '') return
    const line = this.#getOpenLine()
    const last = line.segments.at(-1)
    if (last?.class === this.#class) last.text += text
    else line.segments.push({ text, class: this.#class })
    line.length += text.length
    this.#characters += text.length
  }

  #dropFirstLines(): void {
    if (this.#characters <= this.#maxCharacters) return
    this.#hasDropped = true
    let dropped = 0
    while (dropped < this.#lines.length - 1 && this.#characters > this.#maxCharacters) {
      this.#characters -= this.#lines[dropped]?.length ?? 0
      dropped += 1
    }
    this.#lines = this.#lines.slice(dropped)
    // A single line that is too long continues without its start.
    const [line] = this.#lines
    while (line !== undefined && line.segments.length > 0 && this.#characters > this.#maxCharacters) {
      const [segment] = line.segments
      if (segment === undefined) return
      const removed = Math.min(segment.text.length, this.#characters - this.#maxCharacters)
      segment.text = segment.text.slice(removed)
      if (segment.text === '') line.segments.shift()
      line.length -= removed
      this.#characters -= removed
    }
  }
}

/** The segments of at most the first `limit` characters. */
export function cutLine({ segments }: Line, limit: number): Segment[] {
  const cut: Segment[] = []
  let rest = limit
  for (const segment of segments) {
    if (rest <= 0) break
    cut.push({ ...segment, text: segment.text.slice(0, rest) })
    rest -= segment.text.length
  }
  return cut
}

/** The indexes of the lines that contain the text, in any case. Empty for an empty text. */
export function findLines(lines: readonly Line[], text: string): number[] {
  const wanted = text.toLowerCase()
  if (wanted === '') return []
  const found: number[] = []
  for (const [index, { segments }] of lines.entries())
    if (
      segments
        .map((segment) => segment.text)
        .join('')
        .toLowerCase()
        .includes(wanted)
    )
      found.push(index)
  return found
}
