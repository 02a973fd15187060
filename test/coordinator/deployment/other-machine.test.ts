// A coordinator on another machine, with the same Postgres database: it needs the same master keys, and is the same for machines.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { startPostgres } from '../../support/postgres.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const postgres = await startPostgres()
const skip = 'skipReason' in postgres ? postgres.skipReason : false

t.test('has the values of the first one', { skip }, async (t) => {
  if ('skipReason' in postgres) return
  t.teardown(() => postgres.stop())
  const env = { BOXWOOD_DATABASE_URL: await postgres.newDatabase() }
  const dataDir = createTempDir(t, 'first')
  const first = await startTestCoordinator(t, { dataDir, env })
  const publicKey = await first.instance.context.agentBundles.publicKey()
  const secret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8').trim()
  const signIn = ({ api }: typeof first) => api('POST', '/sign-in/owner', { secret }, { key: null })
  t.equal((await signIn(first)).status, 200)
  await first.close()

  const otherDir = createTempDir(t, 'other')
  await t.rejects(startTestCoordinator(t, { dataDir: otherDir, env }), {
    name: 'StartError',
    message:
      /^Master keys are missing in .*other.*\/master-keys: .* set BOXWOOD_MASTER_KEYS to a file that has them/,
  })
  t.notOk(existsSync(join(otherDir, 'master-keys')), 'a key that the database does not know is not stored')

  const keys = { BOXWOOD_MASTER_KEYS: join(dataDir, 'master-keys') }
  const other = await startTestCoordinator(t, { dataDir: otherDir, env: { ...env, ...keys } })
  t.equal(await other.instance.context.agentBundles.publicKey(), publicKey)
  t.match(
    await signIn(other),
    { status: 401 },
    'no other coordinator runs, so the start has replaced the secret',
  )
  t.equal(
    readFileSync(join(otherDir, 'sign-in.key'), 'utf8').trim(),
    await other.instance.context.sessions.ownerSecret.read(),
  )
})
