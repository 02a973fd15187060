// An attached command or terminal: output and stdin over connections that resume where the previous one was lost.
import { type AttachmentOptions, AttachmentReader } from './attachment-reader.ts'
import { ClientInput, type TerminalSize } from './client-input.ts'
import type { ExitMessage } from './messages.ts'

export type Attachment = {
  /**
   * Resolves with the exit when the sink has processed all output, or with null when the client is detached. Rejects with
   * the errors of the sink, with the signal's reason, and with a CliError when a new connection cannot help.
   */
  result: Promise<ExitMessage | null>
  /** Resolves when more bytes can be written: with false when no further bytes are needed. */
  writeStdin(bytes: Buffer): Promise<boolean>
  endStdin(): void
  detach(): void
  resize(size: TerminalSize): void
  /** Replaces the current connection by a new one. */
  reconnect(): void
}

export function attach(options: AttachmentOptions): Attachment {
  const input = new ClientInput()
  return {
    result: new AttachmentReader(options, input).run(),
    writeStdin: (bytes) => input.writeStdin(bytes),
    endStdin: () => input.endStdin(),
    detach: () => input.detach(),
    resize: (size) => input.resize(size),
    reconnect: () => void input.connection?.close(),
  }
}
