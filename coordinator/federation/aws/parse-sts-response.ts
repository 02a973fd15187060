// Reads the few elements of a response of STS that are needed. The text is untrusted: only bounded, printable text is returned.
import { replaceControlCharacters } from '../../../shared/report-limits.ts'

/** Either the identity of the session, or why AWS has refused it. */
export type VerifyResult = { arn: string } | { error: string }

const MAX_CHARS = 500
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const ARN = /^arn:aws(-[a-z]+)*:sts::\d{12}:assumed-role\/[\w+=,.@/-]{1,200}$/

/** null: the text is no response of STS. */
export function parseStsResponse(xml: string): VerifyResult | null {
  const user = readElement(xml, 'AssumedRoleUser')
  const arn = user === null ? null : readText(user, 'Arn')
  if (arn !== null && ARN.test(arn)) return { arn }
  const error = readElement(xml, 'Error')
  const code = error === null ? null : readText(error, 'Code')
  if (error === null || code === null) return null
  const message = readText(error, 'Message')
  return { error: message === null ? code : `${code}: ${message}` }
}

/** The content of the first element of this name. */
function readElement(xml: string, name: string): string | null {
  const start = xml.indexOf(`<${name}>`)
  const end = xml.indexOf(`</${name}>`, start)
  return start === -1 || end === -1 ? null : xml.slice(start + name.length + 2, end)
}

/** null: the element has no text. */
function readText(xml: string, name: string): string | null {
  const content = readElement(xml, name)?.trim() ?? ''
  if (content === '' || content.includes('<')) return null
  const text = content.replace(/&(amp|lt|gt|quot|apos);/g, (_entity, key: string) => ENTITIES[key] ?? '')
  return replaceControlCharacters(text).slice(0, MAX_CHARS)
}
