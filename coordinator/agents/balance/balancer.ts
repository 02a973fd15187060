// Moves the surplus of agents away in rounds. Between two rounds the agents connect again, and the coordinators count them.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { decideSurplus, getExcess } from './decide-surplus.ts'

export type BalancerOptions = {
  /** The boxes whose agents are connected to this coordinator. */
  listBoxIds(): readonly string[]
  /** The numbers of tunnels of the other coordinators that accept agents. */
  countOthers(): readonly number[]
  /**
   * Closes the tunnel of a box, and makes its agent connect again after `reconnectAfterMs`. Returns false, and does nothing, when
   * the tunnel is in use.
   */
  moveAway(boxId: string, reconnectAfterMs: number): boolean
  /** Monotonic. */
  clock: Clock
  /** 0 or more, less than 1. */
  random(): number
  log: Pick<Logger, 'info'>
}

/** The surplus of a round is moved in about this time, within the bounds of the rate. */
const ROUND_SECONDS = 30
const MIN_PER_SECOND = 5
const MAX_PER_SECOND = 100
/** The agents of one second connect again within this time. */
const MAX_RECONNECT_MS = 1000
/** The renewals of two leases are at most this far apart: then all agents are counted again. */
const MIN_PAUSE_MS = 10_000
/** Where the proxy returns the agents to this coordinator, pauses grow to this time. */
const MAX_PAUSE_MS = 10 * 60_000

type Round = { boxIds: string[]; remaining: number; perSecond: number }

export class Balancer {
  readonly #options: BalancerOptions
  #round: Round | null = null
  /** When the next round may begin; null: there was no surplus. */
  #startsAt: number | null = null
  #pauseMs = MIN_PAUSE_MS
  /** The number of tunnels after which the last round counts as successful. */
  #expected = Number.POSITIVE_INFINITY

  constructor(options: BalancerOptions) {
    this.#options = options
  }

  /** Call it when the numbers of the other coordinators have been read. */
  onCounts(): void {
    const { listBoxIds, countOthers, clock, log } = this.#options
    const [boxIds, others] = [listBoxIds(), countOthers()]
    if (this.#round !== null) {
      this.#round.remaining = Math.min(this.#round.remaining, getExcess(boxIds.length, others))
      return
    }
    const surplus = decideSurplus(boxIds.length, others)
    if (surplus === 0) {
      this.#startsAt = null
      this.#pauseMs = MIN_PAUSE_MS
      this.#expected = Number.POSITIVE_INFINITY
      return
    }
    // A coordinator that has just started gets agents by itself first.
    if (this.#startsAt === null) this.#pause()
    else if (clock.now() < this.#startsAt) return
    else if (boxIds.length > this.#expected) {
      this.#expected = Number.POSITIVE_INFINITY
      this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2)
      this.#pause()
    } else {
      const perSecond = Math.ceil(surplus / ROUND_SECONDS)
      this.#round = {
        boxIds: this.#shuffle(boxIds),
        remaining: surplus,
        perSecond: Math.min(MAX_PER_SECOND, Math.max(MIN_PER_SECOND, perSecond)),
      }
      // Some of the agents return.
      this.#expected = boxIds.length - Math.floor(surplus / 4)
      log.info({ tunnels: boxIds.length, others, surplus }, 'moves agents to other coordinators')
    }
  }

  /** Call it once per second. */
  tick(): void {
    const round = this.#round
    if (round === null) return
    for (let moved = 0; moved < round.perSecond && round.remaining > 0; ) {
      const boxId = round.boxIds.pop()
      if (boxId === undefined) break
      if (!this.#options.moveAway(boxId, Math.floor(this.#options.random() * MAX_RECONNECT_MS))) continue
      moved += 1
      round.remaining -= 1
    }
    if (round.remaining > 0 && round.boxIds.length > 0) return
    this.#round = null
    this.#pause()
  }

  /** Random, so that two coordinators do not move their agents at the same times. */
  #pause(): void {
    const { clock, random } = this.#options
    this.#startsAt = clock.now() + this.#pauseMs * (1 + random() / 2)
  }

  #shuffle(boxIds: readonly string[]): string[] {
    return boxIds
      .map((boxId) => ({ boxId, order: this.#options.random() }))
      .sort((a, b) => a.order - b.order)
      .map(({ boxId }) => boxId)
  }
}
