// Corrects the headers of a response that RFC 9112 lets a recipient accept, before the strict parser of Node reads them: a
// line that ends with LF only (§2.2), and whitespace between a name and its colon, which a proxy has to remove (§5.1).
// Pure. Bodies, also in the chunked encoding, are not changed: what is unclear about a length stays an error.

const LF = 0x0a
const CR = 0x0d
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: |\r?$)/
const SPACE_BEFORE_COLON = /^([\w!#$%&'*+.^`|~-]+)[ \t]+:/
const EMPTY = Buffer.alloc(0)

export class HeaderNormalizer {
  readonly #maxLineBytes: number
  /** The bytes of a line that is not complete. */
  #rest: Buffer = EMPTY
  #state: 'status-line' | 'headers' | 'body' = 'status-line'
  #isInformational = false
  #hasChanged = false

  /** @param maxLineBytes a longer line is passed on as it is, for the parser to refuse */
  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes
  }

  /** Whether a response needed a correction. */
  get hasChanged(): boolean {
    return this.#hasChanged
  }

  /** The next bytes begin a response. */
  startResponse(): void {
    this.#state = 'status-line'
  }

  /** Returns the bytes that can be parsed now. */
  write(chunk: Buffer): Buffer {
    if (this.#isBody()) return chunk
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const parts: Buffer[] = []
    let start = 0
    while (!this.#isInBody()) {
      const end = bytes.indexOf(LF, start)
      if (end === -1) break
      parts.push(this.#takeLine(bytes.subarray(start, end)))
      start = end + 1
    }
    this.#rest = bytes.subarray(start)
    if (this.#rest.length > this.#maxLineBytes) this.#state = 'body'
    if (this.#isInBody()) parts.push(this.end())
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  }

  #isInBody(): boolean {
    return this.#state === 'body'
  }

  /** Returns the rest. */
  end(): Buffer {
    const rest = this.#rest
    this.#rest = EMPTY
    return rest
  }

  #isBody(): boolean {
    return this.#state === 'body'
  }

  /** @param line without LF. Returns it with CRLF. */
  #takeLine(line: Buffer): Buffer {
    const content = line.at(-1) === CR ? line.subarray(0, -1) : line
    const text = content.toString('latin1')
    const corrected = this.#state === 'headers' ? text.replace(SPACE_BEFORE_COLON, '$1:') : text
    this.#advance(text)
    if (content !== line && corrected === text) return Buffer.concat([line, Buffer.from([LF])])
    this.#hasChanged = true
    return Buffer.from(`${corrected}\r\n`, 'latin1')
  }

  #advance(text: string): void {
    if (this.#state === 'status-line') {
      if (text === '') return
      const [, status] = STATUS_LINE.exec(text) ?? []
      // The parser refuses it, and says why.
      if (status === undefined) this.#state = 'body'
      else this.#state = 'headers'
      this.#isInformational = status?.startsWith('1') === true && status !== '101'
    } else if (text === '') this.#state = this.#isInformational ? 'status-line' : 'body'
  }
}
