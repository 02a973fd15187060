// The forms in which a server may send a value back. The search ignores case, and the difference between base64 and base64url.
import { encodeForm, encodeJsonString, encodeParameter, encodePathSegment } from '../encode-value.ts'
import { fold } from './matcher.ts'

/** Shorter values would match text that has nothing to do with them. */
export const MIN_VALUE_BYTES = 8

/**
 * @param values in plain text; those below the minimum are ignored
 * @param maxBytes of all needles together
 * @returns null: there are more bytes. The rest is not created then
 */
export function createNeedles(values: Iterable<string>, maxBytes: number): Buffer[] | null {
  const needles = new Map<string, Buffer>()
  let bytes = 0
  for (const form of listForms(values)) {
    const needle = fold(Buffer.from(form))
    const key = needle.toString('latin1')
    if (needle.length < MIN_VALUE_BYTES || needles.has(key)) continue
    bytes += needle.length
    if (bytes > maxBytes) return null
    needles.set(key, needle)
  }
  return [...needles.values()]
}

function* listForms(values: Iterable<string>): Generator<string> {
  for (const value of values)
    for (const text of readAsServer(value)) {
      if (Buffer.byteLength(text) < MIN_VALUE_BYTES) continue
      yield text
      yield* escapeJson(text)
      yield* encodePercent(text)
      yield* encodeBytes(Buffer.from(text))
    }
}

/**
 * Servers remove the spaces around the value of a header, many read its bytes as Latin-1, not as UTF-8, and some change how lines
 * end.
 */
function readAsServer(value: string): Set<string> {
  const trimmed = value.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')
  // The forms of the value contain those of the trimmed one.
  const text = Buffer.byteLength(trimmed) < MIN_VALUE_BYTES ? value : trimmed
  const lines = text.replace(/\r\n?/g, '\n')
  return new Set(
    [text, lines, lines.replaceAll('\n', '\r\n')].flatMap((variant) => [
      variant,
      Buffer.from(variant).toString('latin1'),
    ]),
  )
}

/** Encoders differ in what they escape: only what they must, also / (PHP), <, > and & (Go), and all that is not ASCII (Python). */
function* escapeJson(value: string): Generator<string> {
  const escaped = encodeJsonString(value)
  for (const text of [escaped, escaped.replaceAll('/', '\\/'), escaped.replace(/[<>&]/g, toUnicodeEscape)]) {
    yield text
    yield text.replace(/[^ -~]/g, toUnicodeEscape)
  }
}

const toUnicodeEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** As in a query, with all characters that RFC 3986 does not call unreserved, in a form, in a path, and in a whole URL. */
function* encodePercent(value: string): Generator<string> {
  const encoded = encodeParameter(value)
  yield encoded
  yield encoded.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  yield encodeForm(value)
  yield encodePathSegment(value)
  yield encodeURI(value.toWellFormed())
}

function* encodeBytes(value: Buffer): Generator<string> {
  yield value.toString('hex')
  for (const offset of [0, 1, 2]) yield encodeAligned(value, offset)
}

/** The characters that depend only on the value, when it follows this number of other bytes. */
function encodeAligned(value: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), value]).toString('base64')
  return text.slice(Math.ceil((8 * offset) / 6), Math.floor((8 * (offset + value.length)) / 6))
}
