// The desktop of the box: one X server, on which the modes desktop and browser run. It continues when the agent exits: the
// next agent finds it by its record.
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type {
  AgentDesktopStart,
  AgentDesktopStatus,
  DesktopMode,
  DesktopSession,
  DesktopStarted,
} from '../../shared/api/desktop.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { CreateEnvironment } from '../exec/environment.ts'
import { toStartError } from '../exec/start-error.ts'
import { isAlive, PROCESS_ID_VARIABLE } from '../process-table.ts'
import { startBrowser } from './browser.ts'
import { endTree } from './processes.ts'
import { assertInstalled, type DesktopPrograms, findDesktopPrograms } from './programs.ts'
import { openSessionFile, type SessionFile, type SessionRecord } from './session-record.ts'
import { startProgram } from './start-program.ts'
import { startXServer } from './x-server.ts'

export type DesktopOptions = {
  /** The state directory of the desktop. */
  dir: string
  home: string
  createEnv: CreateEnvironment
  /** For the mode browser. */
  createBrowserEnv: CreateEnvironment
  bootId: string
  clock: Clock
  log: Pick<Logger, 'error'>
}

/** What a viewer connects to. */
export type ViewerTarget = { file: string; display: string; env: Record<string, string> }

type RunningRecord = SessionRecord & { server: NonNullable<SessionRecord['server']> }

export class Desktop {
  /** Set by the viewers. */
  countViewers: () => number = () => 0
  readonly #options: DesktopOptions
  readonly #file: SessionFile
  readonly #authority: string
  /** One change at a time. */
  readonly #exclusive = pLimit(1)
  #record: SessionRecord | null
  #isEnding = false

  private constructor(options: DesktopOptions) {
    this.#options = options
    this.#file = openSessionFile(join(options.dir, 'session.json'))
    this.#authority = join(options.dir, 'authority')
    this.#record = this.#file.read(options.bootId)
  }

  static async open(options: DesktopOptions): Promise<Desktop> {
    await mkdir(options.dir, { recursive: true, mode: 0o700 })
    return new Desktop(options)
  }

  async status(): Promise<AgentDesktopStatus> {
    const { programs } = await this.#findPrograms()
    const running = this.#findRunning()
    return {
      ok: true,
      type: 'desktop.status',
      programs,
      session: running === null ? null : this.#describe(running),
    }
  }

  /**
   * Starts the mode, and the X server and a window manager if they are not running. A running mode continues.
   * @throws ApiError desktop_not_installed, exec_failed
   */
  start(request: AgentDesktopStart): Promise<DesktopStarted> {
    return this.#exclusive(async () => {
      const { mode = 'desktop' } = request
      const before = this.#findRunning()
      const alreadyRunning = before !== null && listModes(before).includes(mode)
      const running =
        before !== null && alreadyRunning
          ? await this.#startWindowManager(before, await this.#findPrograms(), request)
          : await this.#startMode(before, mode, request)
      const session = this.#describe(running)
      return { ok: true, type: 'desktop.started', mode, alreadyRunning, session }
    })
  }

  /**
   * Terminates the processes of the mode. The mode desktop includes the mode browser. The X server ends with the last mode.
   * @returns whether the mode was running
   * @throws ApiError exec_failed when processes survive
   */
  stop(mode: DesktopMode): Promise<boolean> {
    return this.#exclusive(async () => {
      if (this.#record === null) return false
      const wasRunning = mode === 'desktop' || listModes(this.#record).includes('browser')
      if (mode === 'browser') await this.#endBrowser(this.#record)
      else await this.#endSession(this.#record)
      return wasRunning
    })
  }

  /** @throws ApiError not_found when no desktop is running, desktop_not_installed */
  async openViewer(): Promise<ViewerTarget> {
    const { paths, programs } = await this.#findPrograms()
    const running = this.#findRunning()
    if (running === null)
      throw new ApiError(
        'not_found',
        'The box has no running desktop. Start it with `box desktop start NAME`.',
      )
    if (paths.viewer === undefined) assertInstalled(programs, 'browser')
    const { display } = running.server
    return { file: paths.viewer ?? '', display, env: this.#createEnv(display, running.id) }
  }

  #findPrograms(): Promise<DesktopPrograms> {
    return findDesktopPrograms(this.#options.createEnv().PATH ?? '')
  }

  /** A session that is being terminated does not count: a viewer whose connection has ended must not find it. */
  #findRunning(): RunningRecord | null {
    const record = this.#isEnding ? null : this.#record
    return record?.server && isAlive(record.server) ? { ...record, server: record.server } : null
  }

  #createEnv(
    display: string,
    processId: string,
    boxEnv: Record<string, string> = {},
    createEnv = this.#options.createEnv,
  ): Record<string, string> {
    const variables = { DISPLAY: display, XAUTHORITY: this.#authority, [PROCESS_ID_VARIABLE]: processId }
    return createEnv(boxEnv, variables)
  }

  #describe({ server, startedAt, width, height, dpi, ...modes }: RunningRecord): DesktopSession {
    return {
      display: server.display,
      authority: this.#authority,
      modes: listModes(modes),
      width,
      height,
      dpi,
      viewers: Math.min(this.countViewers(), LIMITS.desktop.viewers),
      startedAt: toTimestamp(startedAt),
    }
  }

  async #save(record: SessionRecord): Promise<void> {
    this.#record = record
    await this.#file.write(record)
  }

  async #startMode(
    before: RunningRecord | null,
    mode: DesktopMode,
    request: AgentDesktopStart,
  ): Promise<RunningRecord> {
    const found = await this.#findPrograms()
    assertInstalled(found.programs, mode)
    try {
      const server = before ?? (await this.#startServer(found, request))
      const session = await this.#startWindowManager(server, found, request)
      const start = mode === 'browser' ? this.#startBrowser : this.#startTerminal
      const running = await start.call(this, session, found, request)
      await this.#save(running)
      return running
    } catch (error) {
      await this.#undoStart(before).catch((err: unknown) =>
        this.#options.log.error({ err }, 'cannot terminate the processes of a desktop that did not start'),
      )
      throw toStartError(error)
    }
  }

  /** Terminates what is left of a session whose X server has exited, and starts another. */
  async #startServer({ paths }: DesktopPrograms, request: AgentDesktopStart): Promise<RunningRecord> {
    if (this.#record !== null) await this.#endSession(this.#record)
    const { bootId, clock, home, dir } = this.#options
    const { width, height, dpi } = LIMITS.desktop
    const size = {
      width: request.width ?? width.default,
      height: request.height ?? height.default,
      dpi: request.dpi ?? dpi.default,
    }
    const id = createProcessId()
    const startedAt = clock.now()
    const programs = { hasDesktop: false, windowManager: null, server: null, browser: null }
    const starting = { bootId, id, startedAt, ...size, ...programs }
    await this.#save(starting)
    const server = await startXServer({
      ...size,
      file: paths.display ?? '',
      cwd: home,
      env: this.#createEnv('', id, request.boxEnv),
      authority: this.#authority,
      logPath: join(dir, 'x-server.log'),
    })
    const running = { ...starting, server }
    await this.#save(running)
    return running
  }

  /** Has no effect when it is running. The mode browser starts without one, and one that exits ends no mode. */
  async #startWindowManager(
    session: RunningRecord,
    { paths }: DesktopPrograms,
    { boxEnv }: AgentDesktopStart,
  ): Promise<RunningRecord> {
    const { windowManager, server, id } = session
    if (paths.windowManager === undefined || (windowManager !== null && isAlive(windowManager)))
      return session
    const env = this.#createEnv(server.display, id, boxEnv)
    const { pid, startTime } = await startProgram(paths.windowManager, [], {
      cwd: this.#options.home,
      env,
    })
    const running = { ...session, windowManager: { pid, startTime } }
    await this.#save(running)
    return running
  }

  async #startTerminal(
    session: RunningRecord,
    { paths }: DesktopPrograms,
    { boxEnv }: AgentDesktopStart,
  ): Promise<RunningRecord> {
    const env = this.#createEnv(session.server.display, session.id, boxEnv)
    if (paths.terminal !== undefined) await startProgram(paths.terminal, [], { cwd: this.#options.home, env })
    return { ...session, hasDesktop: true }
  }

  async #startBrowser(
    session: RunningRecord,
    { paths }: DesktopPrograms,
    { url, boxEnv }: AgentDesktopStart,
  ): Promise<RunningRecord> {
    if (session.browser !== null) await endTree(session.browser.id, session.browser.process)
    const id = createProcessId()
    await this.#save({ ...session, browser: { id, process: null } })
    const leader = await startBrowser({
      file: paths.browser ?? '',
      home: this.#options.home,
      env: this.#createEnv(session.server.display, id, boxEnv, this.#options.createBrowserEnv),
      url,
      width: session.width,
      height: session.height,
    })
    return { ...session, browser: { id, process: leader } }
  }

  /** Terminates what a failed start has started. @param before the session before the start */
  async #undoStart(before: RunningRecord | null): Promise<void> {
    const record = this.#record
    if (record === null) return
    if (before === null) await this.#endSession(record)
    else if (record.browser?.process === null) await this.#endBrowser(record)
  }

  async #endSession(record: SessionRecord): Promise<void> {
    this.#isEnding = true
    try {
      if (record.browser !== null) await endTree(record.browser.id, record.browser.process)
      await endTree(record.id, record.server)
      this.#record = null
      await this.#file.remove()
    } finally {
      this.#isEnding = false
    }
  }

  async #endBrowser(record: SessionRecord): Promise<void> {
    if (record.browser !== null) await endTree(record.browser.id, record.browser.process)
    else if (record.hasDesktop) return
    if (record.hasDesktop && this.#findRunning() !== null) await this.#save({ ...record, browser: null })
    else await this.#endSession(record)
  }
}

const createProcessId = (): string => `desktop-${randomUUID()}`

const listModes = ({ hasDesktop, browser }: Pick<SessionRecord, 'hasDesktop' | 'browser'>): DesktopMode[] => [
  ...(hasDesktop ? (['desktop'] as const) : []),
  ...(browser?.process && isAlive(browser.process) ? (['browser'] as const) : []),
]
