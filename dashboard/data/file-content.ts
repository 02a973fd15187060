// What the content of a file is: an image, text, or other bytes.
import type { FileRead } from '../../shared/api/files.ts'

export type FileContent =
  | { kind: 'text'; text: string }
  | { kind: 'image'; type: string; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'binary' }

/** Images by their first bytes, whatever the name says. Not SVG, which is a document with scripts. */
const SIGNATURES: readonly (readonly [type: string, start: string, at8: string])[] = [
  ['image/png', '\x89PNG\r\n\x1a\n', ''],
  ['image/jpeg', '\xff\xd8\xff', ''],
  ['image/gif', 'GIF87a', ''],
  ['image/gif', 'GIF89a', ''],
  ['image/webp', 'RIFF', 'WEBP'],
]

export function readContent({ encoding, content }: Pick<FileRead, 'encoding' | 'content'>): FileContent {
  if (encoding === 'utf8')
    return content.includes('\0') ? { kind: 'binary' } : { kind: 'text', text: content }
  const text = atob(content)
  const signature = SIGNATURES.find(([, start, at8]) => text.startsWith(start) && text.startsWith(at8, 8))
  if (signature === undefined) return { kind: 'binary' }
  return { kind: 'image', type: signature[0], bytes: Uint8Array.from(text, (byte) => byte.charCodeAt(0)) }
}

export type LineEnd = '\n' | '\r\n'

/** The line end of all lines. Null: the text has several, or a carriage return alone, which a text area would change. */
export function findLineEnd(text: string): LineEnd | null {
  const pairs = text.split('\r\n').length - 1
  const returns = text.split('\r').length - 1
  const feeds = text.split('\n').length - 1
  if (returns === 0) return '\n'
  return pairs === returns && pairs === feeds ? '\r\n' : null
}

/** @param text with the line end of text areas */
export const applyLineEnd = (text: string, lineEnd: LineEnd): string => text.replaceAll('\n', lineEnd)
