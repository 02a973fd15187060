// Forwards what the user types to a terminal session, except escape sequences.
import type { Readable } from 'node:stream'
import type { Attachment } from '../../client/attach/attachment.ts'
import { createEscapeParser, type EscapeAction } from './escape-keys.ts'

/**
 * The end of `stdin` disconnects.
 * @returns a function that stops reading
 */
export function forwardKeys(
  { writeStdin }: Attachment,
  stdin: Readable,
  onAction: (action: EscapeAction) => void,
): () => void {
  const parser = createEscapeParser()
  const forward = async () => {
    for await (const input of stdin) {
      for (let unparsed: Buffer = input; unparsed.length > 0; ) {
        const { bytes, action, rest } = parser.parse(unparsed)
        if (bytes.length > 0) await writeStdin(bytes)
        if (action !== null) onAction(action)
        unparsed = rest
      }
    }
  }
  forward()
    .catch(() => undefined)
    .then(() => onAction('disconnect'))
  return () => void stdin.destroy()
}
