// Signed claims about a command: sent to the box with the request, returned with the box's reports and verified then.
import { createHmac, createSecretKey, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Command, CommandActor } from '../../../shared/api/commands.ts'
import type { Clock } from '../../../shared/clock.ts'
import { truncateCommand } from '../../../shared/report-limits.ts'
import type { Db } from '../../db/open.ts'
import { getOrCreateSigningKey } from './store.ts'

export type CommandClaims = {
  boxId: string
  commandId: string
  mode: Command['mode']
  source: Command['source']
  actor: CommandActor
  /** Milliseconds since the epoch, by the coordinator's clock. */
  requestedAt: number
  keepOutput: boolean
  /** The result of hashCommand(); empty under zero data retention. */
  hash: string
}

export type CommandClaimsSigner = {
  /** Returns the claims token: base64url JSON, a dot, and an HMAC-SHA-256 in base64url. */
  sign(claims: CommandClaims): Promise<string>
  /** Must resolve before `verify` is called. */
  loadKey(): Promise<void>
  /** null for a token that this service did not sign. */
  verify(token: string): CommandClaims | null
}

const KEY_NAME = 'command-claims'
/** A SHA-256 HMAC in base64url. */
const MAC_CHARS = 43
const VERSION = 1

/** Hash of a command's text and directory, so that a box cannot record a different command. */
export function hashCommand(text: string, cwd: string): string {
  const { command, commandTruncated } = truncateCommand(text)
  return hashStoredCommand(command, commandTruncated, cwd)
}

/** The same hash from the truncated text, as the history stores it. */
export const hashStoredCommand = (command: string, commandTruncated: boolean, cwd: string): string =>
  hash('sha256', JSON.stringify([command, commandTruncated, cwd]), 'base64url')

/** @param db holds the signing key. The first coordinator that needs the key creates it. */
export function createCommandClaims(db: Db, clock: Clock): CommandClaimsSigner {
  // A KeyObject: given raw bytes, createHmac builds one on each call, which takes longer than the HMAC itself.
  let key: KeyObject | undefined
  let loading: Promise<void> | undefined

  function loadKey(): Promise<void> {
    if (key !== undefined) return Promise.resolve()
    loading ??= getOrCreateSigningKey(db, KEY_NAME, randomBytes(32).toString('hex'), clock.now())
      .then((hex) => {
        key = createSecretKey(hex, 'hex')
      })
      .finally(() => {
        loading = undefined
      })
    return loading
  }

  function computeMac(payload: string): string {
    if (key === undefined) throw new Error('The signing key of the claims tokens is not loaded.')
    return createHmac('sha256', key).update(payload).digest('base64url')
  }

  return {
    loadKey,
    async sign(claims) {
      if (key === undefined) await loadKey()
      const payload = Buffer.from(JSON.stringify({ version: VERSION, ...claims })).toString('base64url')
      return `${payload}.${computeMac(payload)}`
    },
    verify(token) {
      const dot = token.length - MAC_CHARS - 1
      if (dot < 1 || token[dot] !== '.') return null
      const payload = token.slice(0, dot)
      const [presented, expected] = [Buffer.from(token.slice(dot + 1)), Buffer.from(computeMac(payload))]
      if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return null
      // The signature is valid, so the payload is JSON written by `sign`.
      const { version, ...claims } = JSON.parse(Buffer.from(payload, 'base64url').toString())
      return version === VERSION ? (claims as CommandClaims) : null
    },
  }
}
