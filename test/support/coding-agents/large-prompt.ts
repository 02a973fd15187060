// A prompt of the largest size, and its comparison by hash.
import { createHash } from 'node:crypto'
import { LIMITS } from '../../../shared/limits.ts'

export const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex')

/** A prompt of at most 512 KiB, with characters that have a meaning in JSON, in a shell and for line readers. */
export function createLargePrompt(): string {
  const line = 'ünïcödé "quoted" \\ \u2028 $HOME `x`\n'
  const count = Math.floor(LIMITS.promptBytes / Buffer.byteLength(line))
  return line.repeat(count).trimEnd()
}
