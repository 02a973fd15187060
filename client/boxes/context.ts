// What the parts of the client share.
import type { Routes } from '../generated/routes.ts'
import type { Calls } from '../http/calls.ts'

export type Context = {
  routes: Routes
  calls: Calls
  /** How long a stream may be interrupted before it fails, in milliseconds. */
  outageMs: number
  /** How long a stream may be silent before it is interrupted, in milliseconds. */
  idleMs: number | undefined
}
