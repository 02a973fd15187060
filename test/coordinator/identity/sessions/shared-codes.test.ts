// The number of codes of an email address, which two coordinators of one database count together.
import t from 'tap'
import { createCodes } from '../../../../coordinator/identity/sessions/codes.ts'
import { CODE } from '../../../../coordinator/identity/sessions/lifetime.ts'
import { createClientLimiter } from '../../../../coordinator/identity/sessions/rate-limits.ts'
import { openPair, startSharedPostgres } from '../../../support/shared-databases.ts'
import { createTestClock } from '../../../support/workspace.ts'

const postgres = await startSharedPostgres(t)

t.test(
  'codes that are requested at the same time do not pass the limit',
  { skip: postgres.skip },
  async (t) => {
    const clock = createTestClock()
    const pair = await openPair(t, await postgres.newDatabase())
    const codes = pair.map((db) => {
      const limiter = createClientLimiter({ clock })
      return createCodes({ db, clock, limiter, isShared: true })
    })
    const issued = await Promise.allSettled(
      Array.from({ length: CODE.codesPerEmail }, (_, n) =>
        codes.map(({ exclusively, issue }, index) =>
          exclusively((trx) => issue(trx, 'ann@example.com', { signIn: true }, `192.0.2.${2 * n + index}`)),
        ),
      ).flat(),
    )
    t.equal(issued.filter(({ status }) => status === 'fulfilled').length, CODE.codesPerEmail)
    const rejected = issued.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    t.match(rejected, Array(CODE.codesPerEmail).fill({ code: 'rate_limited' }))
  },
)
