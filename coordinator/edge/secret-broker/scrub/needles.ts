// The forms in which a server may send a value back.

/** Shorter values would match text that has nothing to do with them. */
export const MIN_VALUE_BYTES = 8

/**
 * @param values in plain text; those below the minimum are ignored
 * @param sent what requests have had instead of a value: the text of `Authorization: Basic`
 */
export function createNeedles(values: readonly string[], sent: readonly string[]): Buffer[] {
  const forms = values
    .flatMap((value) => readAsServer(value))
    .filter((value) => Buffer.byteLength(value) >= MIN_VALUE_BYTES)
    .flatMap((value) => [
      value,
      ...escapeJson(value),
      ...encodePercent(value),
      ...encodeBytes(Buffer.from(value)),
    ])
  return [...new Set([...forms, ...sent])]
    .map((form) => Buffer.from(form))
    .filter(({ length }) => length >= MIN_VALUE_BYTES)
}

/** Servers remove the spaces around the value of a header, and many read its bytes as Latin-1, not as UTF-8. */
const readAsServer = (value: string): string[] =>
  [value, value.replace(/^[ \t]+|[ \t]+$/g, '')].flatMap((text) => [
    text,
    Buffer.from(text).toString('latin1'),
  ])

/** Encoders differ in what they escape: only what they must, also / (PHP), <, > and & (Go), and all that is not ASCII (Python). */
function escapeJson(value: string): string[] {
  const escaped = JSON.stringify(value).slice(1, -1)
  const variants = [escaped, escaped.replaceAll('/', '\\/'), escaped.replace(/[<>&]/g, toUnicodeEscape)]
  return variants.flatMap((text) => {
    const ascii = text.replace(/[^ -~]/g, toUnicodeEscape)
    return [text, ascii, ascii.replace(/\\u[0-9a-f]{4}/g, (unit) => `\\u${unit.slice(2).toUpperCase()}`)]
  })
}

const toUnicodeEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** As in a path, in a form, in a whole URL, and with all characters that RFC 3986 does not call unreserved. */
function encodePercent(value: string): string[] {
  const text = value.toWellFormed()
  const encoded = encodeURIComponent(text)
  const strict = encoded.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = new URLSearchParams({ v: text }).toString().slice('v='.length)
  return [encoded, strict, form, encodeURI(text)].flatMap((variant) => [
    variant,
    variant.replace(/%[0-9A-F]{2}/g, (encodedByte) => encodedByte.toLowerCase()),
  ])
}

function encodeBytes(value: Buffer): string[] {
  const hex = value.toString('hex')
  const base64 = [0, 1, 2].map((offset) => encodeAligned(value, offset))
  return [hex, hex.toUpperCase(), ...base64, ...base64.map(toUrlAlphabet)]
}

/** The characters that depend only on the value, when it follows this number of other bytes. */
function encodeAligned(value: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), value]).toString('base64')
  return text.slice(Math.ceil((8 * offset) / 6), Math.floor((8 * (offset + value.length)) / 6))
}

const toUrlAlphabet = (base64: string): string => base64.replaceAll('+', '-').replaceAll('/', '_')
