// Creates the services of sign-in and sessions.
import type { Clock } from '../../../shared/clock.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Db } from '../../db/open.ts'
import type { Mailer } from '../mail/mailer.ts'
import { type Codes, type CodesOptions, createCodes } from './codes.ts'
import type { OwnerSecret } from './owner-secret.ts'
import { createProfileService, type ProfileService } from './profile.ts'
import { pruneSessions } from './prune.ts'
import { type ClientLimiter, createClientLimiter } from './rate-limits.ts'
import { createSessionService, type SessionService } from './service.ts'
import { createSignIn, type SignIn, type SignInOptions } from './sign-in.ts'
import { createSessionStarter } from './start-session.ts'

export type Sessions = {
  service: SessionService
  signIn: SignIn
  ownerSecret: OwnerSecret
  profile: ProfileService
  codes: Codes
  limiter: ClientLimiter
  /** @param signal aborts between two transactions */
  prune(signal: AbortSignal): Promise<void>
}

export type SessionsOptions = {
  db: Db
  clock: Clock
  mailer: Mailer
  background: BackgroundTasks
  ownerSecret: OwnerSecret
  isShared: CodesOptions['isShared']
  createAccount: SignInOptions['createAccount']
  /** Multiplies the limits per client address, for tests. Default: 1. */
  addressLimitFactor?: number
}

export function createSessions(options: SessionsOptions): Sessions {
  const { db, clock, mailer, background, ownerSecret, isShared, createAccount } = options
  const { addressLimitFactor = 1 } = options
  const limiter = createClientLimiter({ clock, factor: addressLimitFactor })
  const codes = createCodes({ db, clock, limiter, isShared })
  const starter = createSessionStarter({ clock })
  return {
    service: createSessionService({ db, clock, starter }),
    signIn: createSignIn({
      db,
      clock,
      codes,
      starter,
      limiter,
      mailer,
      background,
      ownerSecret,
      createAccount,
    }),
    ownerSecret,
    profile: createProfileService({ db, clock, codes, limiter, mailer, background }),
    codes,
    limiter,
    prune: (signal) => pruneSessions({ db, clock }, signal),
  }
}
