// Handles the messages of an attached client: acknowledgements, stdin and detach.
import type { ClientMessage, StdinBytes } from '../../../shared/api/attach.ts'
import { ATTACH_LIMITS } from '../../../shared/attach-format.ts'
import type { AttachSocket } from '../../attach/attach-socket.ts'
import type { Attachment } from './attachment.ts'
import type { OutputWindow } from './output-window.ts'

export type ClientMessagesOptions = {
  attachment: Pick<Attachment, 'stdin' | 'acknowledge' | 'detach' | 'finish'>
  socket: Pick<AttachSocket, 'send' | 'close'>
  window: OutputWindow
}

export class ClientMessages {
  readonly #options: ClientMessagesOptions
  /** Messages that arrive before start(). null: start() was called. */
  #early: (ClientMessage | StdinBytes)[] | null = []
  /** False once the client is closing: its remaining messages are ignored. */
  #isActive = true
  #isExitSent = false

  constructor(options: ClientMessagesOptions) {
    this.#options = options
  }

  receive(message: ClientMessage | StdinBytes): void {
    if (this.#early === null) this.#handle(message)
    else this.#early.push(message)
  }

  /** Handles the messages so far. To be called when the client knows that it is attached. */
  start(): void {
    const early = this.#early ?? []
    this.#early = null
    for (const message of early) this.#handle(message)
  }

  /** To be called before the exit is sent. Until then, the client cannot have received it. */
  expectExitReceived(): void {
    this.#isExitSent = true
  }

  /** Closes the connection with an error. */
  reject(message: string): void {
    this.#isActive = false
    this.#options.socket.close({ type: 'error', code: 'invalid_request', message })
  }

  /** Ignores further messages. */
  close(): void {
    this.#isActive = false
  }

  #handle(message: ClientMessage | StdinBytes): void {
    if (!this.#isActive) return
    const { attachment, socket } = this.#options
    if (message.type === 'ack') this.#acknowledge(message.stdoutOffset, message.stderrOffset)
    else if (message.type === 'stdinBytes') this.#writeStdin(message.bytes)
    else if (message.type === 'stdinEnd') attachment.stdin?.end()
    else if (message.type === 'detach') {
      attachment.detach()
      socket.close()
    } else if (message.type === 'exitReceived' && this.#isExitSent) {
      attachment.finish()
      socket.close()
    }
  }

  #acknowledge(stdout: number, stderr: number): void {
    const { attachment, window } = this.#options
    if (window.acknowledge({ stdout, stderr })) attachment.acknowledge(window.acknowledged)
    else this.reject('ack has an offset of output that was not sent')
  }

  #writeStdin(bytes: Buffer): void {
    const { socket, attachment } = this.#options
    const { stdin } = attachment
    if (stdin === null) {
      this.reject('The command was started without stdin.')
    } else if (
      stdin.queuedBytes() + bytes.length >
      ATTACH_LIMITS.stdinWindowBytes + ATTACH_LIMITS.chunkBytes
    ) {
      this.reject(`The client sent more than ${ATTACH_LIMITS.stdinWindowBytes} bytes of stdin ahead.`)
    } else {
      stdin.write(bytes)
      if (stdin.isClosed) socket.send({ type: 'stdin', offset: stdin.acceptedOffset() })
    }
  }
}
