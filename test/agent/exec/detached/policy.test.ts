// The runner takes its turn behind the command, until that keeps output waiting.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
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
    const { start, get: find } = await agent(t)
    const run = async (command: string) => {
      const { processId } = await start(command)
      const started = readStarted(find(processId).folder)
      if (started === undefined) throw new Error('it has not started')
      return { runner: started.runner.pid, command: started.command.pid }
    }

    const waits = await run('while :; do echo line; sleep 0.05; done')
    await until('a command that waits is not interrupted', () => policyOf(waits.runner) === BATCH)
    t.equal(policyOf(waits.command), OTHER, 'the command is as anybody is')

    const computes = await run(
      'while :; do echo line; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done',
    )
    await until('nobody is kept waiting yet', () => policyOf(computes.runner) === BATCH)
    const [cpu = '0'] =
      /Cpus_allowed_list:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.slice(1) ?? []
    for (const pid of [computes.command, computes.runner])
      execFileSync('taskset', ['-p', '-c', cpu, String(pid)], { stdio: 'ignore' })
    await until(
      'one that computes on where nobody else can run is',
      () => policyOf(computes.runner) === OTHER,
    )
  },
)
