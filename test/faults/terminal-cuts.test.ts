// A terminal whose client, tunnel and coordinator are cut shows at the end what a terminal shows that was never cut.
import t from 'tap'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { openResumingTerminal, type ResumingTerminal } from '../support/resuming-terminal.ts'
import { describeTerminal } from '../support/terminal-screen.ts'
import { waitUntil } from '../support/wait-until.ts'

const CUTS = 12
const LINES_PER_CUT = 5

/** Draws on the alternate screen, in a scroll region, in color. What it draws depends on every line of the input. */
const PROGRAM = `
stty -echo
printf '\\033[?1049h\\033[?25l\\033[3;20r'
count=0 sum=0
while read -r line && [ "$line" != end ]; do
  count=$((count + 1)) sum=$(((sum * 31 + line) % 99991))
  printf '\\033[20;1H'
  seq $sum $((sum + 300))
  printf '\\033[%d;%dH\\033[1;38;5;%dm%s:%s 日本\\033[m' $((21 + count % 4)) $((1 + count % 60)) $((count % 200)) $count $sum
done
printf '\\033[1;1Htotal %d %d\\033[22;5H' $count $sum
sleep 0.2
exit 9`

t.test('compared as screens', async (t) => {
  const { coordinator, clientProxy, agentProxy, box, restart } = await startProxiedCoordinator(t)
  const path = `/v1/box/${box.hostname}`

  async function open(session: string): Promise<ResumingTerminal> {
    const { status } = await coordinator.sendJson('POST', `${path}/terminal/sessions`, {
      session,
      command: PROGRAM,
    })
    t.equal(status, 200)
    const terminal = openResumingTerminal(() => clientProxy.url + path, coordinator.authHeaders(), session)
    t.teardown(() => terminal.close())
    return terminal
  }
  const inputOf = (round: number) =>
    Array.from({ length: LINES_PER_CUT }, (_, line) => `${round * 17 + line}\n`).join('')

  const uncut = await open('uncut')
  for (let round = 0; round < CUTS; round++) uncut.type(inputOf(round))
  uncut.type('end\n')
  t.match(await uncut.waitForExit(), { status: 'exited', exitCode: 9 })
  await uncut.flush()
  t.equal(uncut.counts.connections, 1)

  const faults = [() => clientProxy.reset(), () => agentProxy.reset(), restart, () => agentProxy.reset()]
  const cut = await open('cut')
  await waitUntil('the client is connected', () => cut.counts.connections === 1)
  for (let round = 0; round < CUTS; round++) {
    const { connections } = cut.counts
    // Half of the input before the cut, the rest during the reconnect.
    const input = inputOf(round)
    cut.type(input.slice(0, 10))
    await faults[round % faults.length]?.()
    cut.type(input.slice(10))
    await waitUntil('the client has reconnected', () => cut.counts.connections > connections)
  }
  cut.type('end\n')
  t.match(await cut.waitForExit(), { status: 'exited', exitCode: 9 })
  await cut.flush()
  t.ok(cut.counts.connections > CUTS, `${cut.counts.connections} connections, ${cut.counts.screens} screens`)
  t.same(describeTerminal(cut.terminal), describeTerminal(uncut.terminal))
})
