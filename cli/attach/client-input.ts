// The input of an attached client: stdin, the size of the terminal, and the request to detach. A new connection sends again
// what the server may not have received.
import type { ClientMessage } from '../../shared/api/attach.ts'
import { ATTACH_LIMITS } from '../../shared/attach-format.ts'
import type { Connection } from './connection.ts'
import { createStdinWindow } from './stdin-window.ts'

export type TerminalSize = { cols: number; rows: number }

export class ClientInput {
  readonly #stdin = createStdinWindow((bytes) => this.#connection?.sendStdin(bytes))
  #connection: Connection | null = null
  #isStdinEnded = false
  #isDetaching = false
  #pendingSize: TerminalSize | null = null

  /** null while no connection has received the message `attached`. */
  get connection(): Connection | null {
    return this.#connection
  }

  get isDetaching(): boolean {
    return this.#isDetaching
  }

  /** Continues on a new connection. Returns false when the box has lost accepted bytes of stdin. */
  resume(connection: Connection, stdinOffset: number): boolean {
    const isResumed = this.#stdin.resume(stdinOffset)
    this.#connection = connection
    for (const bytes of this.#stdin.getUnaccepted()) connection.sendStdin(bytes)
    if (this.#isStdinEnded) connection.send({ type: 'stdinEnd' })
    if (this.#pendingSize !== null) connection.send({ type: 'resize', ...this.#pendingSize })
    this.#pendingSize = null
    if (this.#isDetaching) connection.send({ type: 'detach' })
    return isResumed
  }

  /** The connection is closed. */
  pause(): void {
    this.#connection = null
  }

  /** Has no effect without a connection. */
  send(message: ClientMessage): void {
    this.#connection?.send(message)
  }

  /** The server has accepted stdin up to `offset`. @throws CliError for an offset that is not in the window */
  acceptStdin(offset: number): void {
    this.#stdin.accept(offset)
  }

  /** The command reads no more: discards all bytes. */
  closeStdin(): void {
    this.#stdin.close()
  }

  /** Resolves when more bytes can be written: with false when no further bytes are needed. */
  async writeStdin(bytes: Buffer): Promise<boolean> {
    const { chunkBytes } = ATTACH_LIMITS
    for (let start = 0; start < bytes.length; start += chunkBytes)
      if (!(await this.#stdin.append(bytes.subarray(start, start + chunkBytes)))) return false
    return !this.#stdin.isClosed
  }

  endStdin(): void {
    this.#isStdinEnded = true
    this.send({ type: 'stdinEnd' })
  }

  detach(): void {
    this.#isDetaching = true
    this.send({ type: 'detach' })
  }

  resize(size: TerminalSize): void {
    if (this.#connection === null) this.#pendingSize = size
    else this.send({ type: 'resize', ...size })
  }
}
