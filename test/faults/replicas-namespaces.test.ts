// Three coordinators in network namespaces of their own, behind Caddy, with many agents: they are killed, cut off from Postgres and
// from each other, and their hosts are down for a while.
//
// Variables: BOXWOOD_NAMESPACES_AGENTS (simulated ones, default 200), BOXWOOD_NAMESPACES_BOXES (local boxes of each replica, default
// 1), BOXWOOD_NAMESPACES_MINUTES (of kills, default 1), BOXWOOD_NAMESPACES_REVOCATIONS (default 40), BOXWOOD_NAMESPACES_SEED, and
// BOXWOOD_NAMESPACES_ROUNDS: kill,postgres,peers,revocations,hosts (default: all).
import t, { type Test } from 'tap'
import { runPeersCutRound, runPostgresCutRound } from '../support/namespaces/cut-rounds.ts'
import { type NamespaceFleet, startNamespaceFleet } from '../support/namespaces/fleet.ts'
import { runHostRound } from '../support/namespaces/host-round.ts'
import { runKillRound } from '../support/namespaces/kill-round.ts'
import { startNamespaceLoad } from '../support/namespaces/load.ts'
import { createBridge, findNetworkProblem, POSTGRES_ADDRESS } from '../support/namespaces/network.ts'
import { runRevocationRound } from '../support/namespaces/revocation-round.ts'
import { startSecretHost } from '../support/namespaces/secret-host.ts'
import { findOwnMachineProblem, isOnOwnMachine, runOnOwnMachine } from '../support/own-machine.ts'
import { startPostgres } from '../support/postgres.ts'
import { createSeededRandom } from '../support/random.ts'
import { requires } from '../support/requires.ts'

const readNumber = (name: string, fallback: number): number =>
  Number(process.env[`BOXWOOD_NAMESPACES_${name}`] ?? fallback)

const seed = readNumber('SEED', 20_261_201)
const seconds = readNumber('MINUTES', 1) * 60
const cutSeconds = Math.min(60, seconds / 6)
/** Longer than the lease. A running box is degraded after 60 s. */
const hostSeconds = Math.max(20, Math.min(70, seconds / 3))

/** The option `skip` of a round. */
const unlessSelected = (round: string): string | false => {
  const selected = process.env.BOXWOOD_NAMESPACES_ROUNDS?.split(',')
  return selected !== undefined && !selected.includes(round) && 'not selected'
}

/** The rounds in which every kind of request arrives at any replica. */
async function runUnderLoad(t: Test, fleet: NamespaceFleet): Promise<void> {
  const random = createSeededRandom(seed)
  const load = await startNamespaceLoad(t, fleet, { random, seed })
  await t.test('one of them is killed', { skip: unlessSelected('kill') }, async (t) => {
    t.comment(JSON.stringify(await runKillRound(fleet, load, { seconds, random })))
  })
  await t.test('one of them cannot reach Postgres', { skip: unlessSelected('postgres') }, async (t) => {
    t.comment(JSON.stringify(await runPostgresCutRound(t, { fleet, load, seconds: cutSeconds })))
  })
  await t.test('two of them cannot reach each other', { skip: unlessSelected('peers') }, async (t) => {
    t.comment(JSON.stringify(await runPeersCutRound(t, { fleet, load, seconds: cutSeconds })))
  })
  await t.test('nothing is lost, and nothing is done twice', async (t) => {
    await load.during(load.stop())
    await load.check()
    t.pass()
  })
}

if (!isOnOwnMachine()) {
  const skip = findOwnMachineProblem() || findNetworkProblem() || requires('caddy', 'openssl')
  t.test('replicas in network namespaces', { skip }, (t) => runOnOwnMachine(t, import.meta.filename))
} else
  t.test('replicas in network namespaces', async (t) => {
    createBridge()
    const postgres = await startPostgres({ address: POSTGRES_ADDRESS })
    if ('skipReason' in postgres) return void t.pass('', { skip: postgres.skipReason })
    t.teardown(postgres.stop)
    const secretHost = await startSecretHost(t)
    const fleet = await startNamespaceFleet(t, {
      postgres,
      env: secretHost.env,
      simulatedAgents: readNumber('AGENTS', 200),
      boxesPerReplica: readNumber('BOXES', 1),
    })
    t.comment(
      JSON.stringify({ seed, connectMs: fleet.simulated.connectMs, tunnels: await fleet.countTunnels() }),
    )
    if (['kill', 'postgres', 'peers'].some((round) => unlessSelected(round) === false))
      await runUnderLoad(t, fleet)
    await t.test(
      'what is revoked through one of them ends at another one',
      { skip: unlessSelected('revocations') },
      async (t) => {
        const count = readNumber('REVOCATIONS', 40)
        t.comment(JSON.stringify(await runRevocationRound(t, fleet, { secretHost, count })))
      },
    )
    await t.test('the coordinator of a host is down', { skip: unlessSelected('hosts') }, async (t) => {
      t.comment(JSON.stringify(await runHostRound(t, fleet, { seconds: hostSeconds })))
    })
  })
