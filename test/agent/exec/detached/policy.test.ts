// The runner takes its turn behind the command, until that keeps output waiting.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readStarted } from '../../../../agent/exec/detached/record.ts'
import { until } from '../exec-app.ts'
import { agent, isNative } from './support.ts'

const [OTHER, BATCH] = [0, 3]

/** proc(5): the 41st field of stat. */
function policyOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[41 - 3])
}

t.test(
  'the runner and its command',
  { skip: isNative ? false : 'the script has no say in it' },
  async (t) => {
    const { start, get: find, home } = await agent(t)
    const { processId } = await start(`
    while [ ! -e go ]; do echo line; sleep 0.5; done
    while :; do echo line; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done`)
    const started = readStarted(find(processId).folder)
    if (started === undefined) throw new Error('it has not started')
    const { runner, command } = started
    await until('a command that waits is not interrupted', () => policyOf(runner.pid) === BATCH)
    t.equal(policyOf(command.pid), OTHER, 'the command is as anybody is')

    const [, cpu = '0'] = /Cpus_allowed_list:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    for (const { pid } of [command, runner])
      execFileSync('taskset', ['-p', '-c', cpu, String(pid)], { stdio: 'ignore' })
    writeFileSync(join(home, 'go'), '')
    await until(
      'one that computes on is, where both have one processor',
      () => policyOf(runner.pid) === OTHER,
    )
  },
)
