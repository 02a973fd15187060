// The terminal sessions of a box, which run on without a client.
import type { TerminalSize } from '../attach/format.ts'
import type { TerminalStart } from '../generated/types.ts'
import { type CallOptions, createRandomId } from '../http/calls.ts'
import { createError } from '../http/errors.ts'
import { Attached } from './attached.ts'
import type { Context } from './context.ts'

export type OpenTerminalOptions = Pick<CallOptions, 'signal'> & TerminalStart

export type AttachTerminalOptions = Pick<CallOptions, 'signal'> &
  Partial<TerminalSize> & {
    /** Continues the input of the terminal whose `client` it is. */
    client?: string
    /** Continues the output after this offset. Default: with the current screen. */
    from?: number
  }

export type TerminalOutput =
  | { type: 'output'; bytes: Uint8Array<ArrayBuffer> }
  /** The whole screen, which replaces the output so far: clear a terminal of this size, and write the bytes. */
  | ({ type: 'screen'; bytes: Uint8Array<ArrayBuffer> } & TerminalSize)
  /** The session has this size now. */
  | ({ type: 'resized' } & TerminalSize)

/** What changes during the life of a terminal. */
type State = { offset: number | null; size: Partial<TerminalSize> }

/** A client of a session. When the signal is aborted, it disconnects. */
export class Terminal extends Attached<TerminalOutput> {
  readonly session: string
  /** With `offset`, another program continues this terminal: see `attach` of `box.terminals`. */
  readonly client: string
  readonly #state: State

  constructor(
    context: Context,
    boxId: string,
    session: string,
    { client = createRandomId(), from, cols, rows, signal }: AttachTerminalOptions = {},
  ) {
    const state: State = {
      offset: from ?? null,
      size: cols === undefined || rows === undefined ? {} : { cols, rows },
    }
    const query = { session, client, create: 'never' } as const
    super(context, {
      connect(offsets, handlers, attemptSignal) {
        const offset = offsets === null ? {} : { offset: offsets.stdout }
        const call = { signal: attemptSignal }
        return context.routes.terminals.attach(boxId, handlers, { ...query, ...offset, ...state.size }, call)
      },
      check: (checkSignal) => checkSession(context, boxId, session, checkSignal),
      start: from === undefined ? null : { stdout: from, stderr: 0 },
      signal,
      createSink: (push) => ({
        async write(_channel, bytes) {
          if ((await push({ type: 'output', bytes })) && state.offset !== null) state.offset += bytes.length
        },
        async drawScreen(bytes, size, end) {
          if (await push({ type: 'screen', bytes, ...size })) state.offset = end.stdout
        },
        async resize(size) {
          await push({ type: 'resized', ...size })
        },
      }),
    })
    this.session = session
    this.client = client
    this.#state = state
  }

  /** The position after the output that was read. null: the screen was not read. */
  get offset(): number | null {
    return this.#state.offset
  }

  resize(size: TerminalSize): void {
    this.#state.size = size
    this.attachment.resize(size)
  }

  /** The session runs on. Resolves when the client is detached. */
  async detach(): Promise<void> {
    this.attachment.detach()
    await this.attachment.result
  }
}

export class Terminals {
  readonly #context: Context
  readonly #boxId: string

  constructor(context: Context, boxId: string) {
    this.#context = context
    this.#boxId = boxId
  }

  /** Starts a session, and attaches to it. Wakes the box. */
  async open({ signal, ...request }: OpenTerminalOptions = {}): Promise<Terminal> {
    const options = signal === undefined ? {} : { signal }
    const { session } = await this.#context.routes.terminals.start(this.#boxId, request, options)
    return this.attach(session, { ...options, from: 0 })
  }

  /** Attaches to a session. Resolves when it is attached. */
  async attach(session: string, options?: AttachTerminalOptions): Promise<Terminal> {
    const terminal = new Terminal(this.#context, this.#boxId, session, options)
    await terminal.whenAttached
    return terminal
  }

  /** The running sessions, newest first. */
  list(options?: CallOptions) {
    return this.#context.routes.terminals.list(this.#boxId, options)
  }

  /** Terminates the programs of a session. */
  close(session: string, options?: CallOptions) {
    return this.#context.routes.terminals.kill(this.#boxId, session, options)
  }
}

/** @throws BoxwoodError when the session does not exist */
async function checkSession(
  { routes }: Context,
  boxId: string,
  session: string,
  signal: AbortSignal,
): Promise<void> {
  const { sessions } = await routes.terminals.list(boxId, { signal })
  if (sessions.some((other) => other.session === session)) return
  const message = `There is no terminal session ${session}.`
  throw createError({ code: 'not_found', message, status: 404 })
}
