// With billing off, requests run no query on the tables of billing, and the account shows zeros.
import { type SQLInputValue, StatementSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createTestSession } from '../support/session.ts'

type Execute<Result> = (this: StatementSync, ...parameters: SQLInputValue[]) => Result

/** Returns a function that returns the statements that SQLite has run since its last call. */
function recordStatements(t: Test): () => string[] {
  const { prototype } = StatementSync
  const { all, run } = prototype
  const statements: string[] = []
  const record = <Result>(execute: Execute<Result>): Execute<Result> =>
    function (...parameters) {
      statements.push(this.sourceSQL)
      return execute.apply(this, parameters)
    }
  Object.assign(prototype, { all: record<unknown>(all), run: record<unknown>(run) })
  t.teardown(() => Object.assign(prototype, { all, run }))
  return () => statements.splice(0)
}

t.test('no request reads or writes the tables of billing', async (t) => {
  const readStatements = recordStatements(t)
  const coordinator = await startTestCoordinator(t)
  const { api, waitForState } = coordinator
  const session = await createTestSession(coordinator)
  t.ok(
    readStatements().some((text) => text.includes('billing_')),
    'the recording sees them: a start ends the meters of an earlier one with billing',
  )

  const { json: created } = await api('POST', '/boxes', { tier: 'nano' })
  const { id } = created.box
  await waitForState(id, 'running')
  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
  t.equal((await api('POST', `/boxes/${id}/resize`, { target_tier: 'micro' })).status, 202)
  await api('PATCH', `/boxes/${id}`, { autoPauseMin: 60 })
  t.equal((await api('POST', '/snapshots', { boxId: id, name: 'copy' })).status, 201)
  t.equal((await api('POST', '/secrets', { name: 'SECRET', value: 'x' }, session)).status, 201)
  const { json: me } = await api('GET', '/me')
  t.match(me.billing, { balanceMicros: 0, burnMicrosPerHour: 0, runwayHours: null, trial: false })
  const { json: team } = await api('GET', '/team/status')
  t.match(team.totals, { spendTodayMicros: 0, spendCycleMicros: 0 })
  await api('DELETE', `/boxes/${id}`)
  await waitForState(id, 'terminated')

  const statements = readStatements()
  t.ok(statements.length > 100, `${statements.length} statements`)
  t.same(
    statements.filter((text) => text.includes('billing_')),
    [],
  )
})
