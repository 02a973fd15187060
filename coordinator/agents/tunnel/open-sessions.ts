// The open connections of all agents: checks that they are alive, and closes them when the coordinator stops.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../shared/clock.ts'
import type { Session } from './session.ts'

export type OpenSessionsOptions = {
  clock: Clock
  /** 0 or more, less than 1. */
  random: () => number
  /** Milliseconds between the liveness checks. */
  tickMs: number
  /** How long requests in flight may continue during a drain, in milliseconds. */
  drainMs: number
  /** See AgentConnectionsOptions. */
  reconnectSpreadMs: number | undefined
}

/** Typical duration of a restart. */
const RESTART_MS = 500
/** Until an agent tries another coordinator. */
const NEXT_MS = 100
/** Spreads the reconnects to 200 agents per second. A coordinator accepts this rate with TLS too. */
const SPREAD_PER_AGENT_MS = 5
const MAX_SPREAD_MS = 60_000

export class OpenSessions {
  readonly #options: OpenSessionsOptions
  readonly #sessions = new Set<Session>()
  /** One timer for all sessions. */
  readonly #timer: NodeJS.Timeout
  #spreadMs: number
  #isDraining = false
  #minReconnectMs = RESTART_MS

  constructor(options: OpenSessionsOptions) {
    this.#options = options
    this.#spreadMs = options.reconnectSpreadMs ?? 0
    this.#timer = this.#startLivenessChecks()
  }

  /** Whether no further sessions may be opened. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  add(session: Session): void {
    this.#sessions.add(session)
    void session.closed.then(() => this.#sessions.delete(session))
  }

  /** How long an agent waits before it reconnects, in milliseconds: random, so that not all reconnect at once. */
  reconnectAfterMs(): number {
    return Math.floor(this.#minReconnectMs + this.#spreadMs * this.#options.random())
  }

  /** Opens no further sessions: their agents connect to other coordinators. */
  refuse(): void {
    this.#isDraining = true
    this.#minReconnectMs = NEXT_MS
  }

  /** Waits for requests in flight, for a limited time, and closes each session with a reconnect delay. */
  async drain(): Promise<void> {
    const { clock, drainMs, reconnectSpreadMs } = this.#options
    this.#isDraining = true
    this.#spreadMs = reconnectSpreadMs ?? Math.min(MAX_SPREAD_MS, this.#sessions.size * SPREAD_PER_AGENT_MS)
    const deadline = clock.now() + drainMs
    await Promise.all([...this.#sessions].map((session) => this.#drainSession(session, deadline)))
  }

  /** Closes each session with a reconnect delay, immediately. The agents connect to other coordinators. */
  moveAway(reason: string): void {
    const { reconnectSpreadMs } = this.#options
    this.#spreadMs = reconnectSpreadMs ?? Math.min(MAX_SPREAD_MS, this.#sessions.size * SPREAD_PER_AGENT_MS)
    for (const session of [...this.#sessions]) session.destroyForReconnect(this.reconnectAfterMs(), reason)
  }

  /** Closes everything immediately. */
  close(): void {
    this.#isDraining = true
    clearInterval(this.#timer)
    for (const session of [...this.#sessions]) session.destroy('the coordinator is stopping')
  }

  async #drainSession(session: Session, deadline: number): Promise<void> {
    session.retire()
    while (session.inFlight() > 0 && this.#options.clock.now() < deadline) await sleep(20)
    session.closeForReconnect(this.reconnectAfterMs())
    await Promise.race([session.closed, sleep(1000, undefined, { ref: false })])
    // The agent may not have closed the connection.
    session.destroy('the coordinator is stopping')
  }

  #startLivenessChecks(): NodeJS.Timeout {
    const { clock, tickMs } = this.#options
    let lastCheck = clock.now()
    return setInterval(() => {
      const now = clock.now()
      const elapsedMs = now - lastCheck
      lastCheck = now
      for (const session of this.#sessions) session.runLivenessCheck(elapsedMs)
    }, tickMs)
  }
}
