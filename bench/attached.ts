// Measures attached commands against ssh through a reverse tunnel: the time of one command, and the throughput of stdin and
// stdout.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { PROJECT_DIR } from '../test/support/project.ts'
import { openAttachment } from './support/attachment.ts'
import type { Boxwood } from './support/boxwood.ts'
import { runProgram } from './support/processes.ts'
import type { SshBaseline } from './support/ssh.ts'
import { formatNumber, measureDuration, measureRuns, median, quantile } from './support/stats.ts'
import type { Table } from './support/table.ts'

const EXEC_ROUNDS = 4
const EXEC_RUNS = 50
const WARM_UP_RUNS = 10
const THROUGHPUT_RUNS = 3
const SIZE_MIB = 1024

const CLI = [join(PROJECT_DIR, 'box')]

export async function benchAttached(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table[]> {
  return [await benchCommand(boxwood, ssh), await benchThroughput(boxwood, ssh)]
}

const cliEnv = ({ url, key }: Boxwood) => ({
  ...process.env,
  BOXWOOD_URL: url,
  BOXWOOD_API_KEY: key,
})

/** Starts `true` with POST /exec, attaches and waits for the exit. */
async function runAttached(boxwood: Boxwood): Promise<void> {
  const body = { command: 'true', attached: true }
  const { processId } = await boxwood.sendJson('POST', `/v1/box/${boxwood.box.hostname}/exec`, body)
  const attachment = await openAttachment(boxwood, `/exec/${processId}/attach`)
  await attachment.exited
}

async function benchCommand(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table> {
  const { hostname } = boxwood.box
  const [program = '', ...cliArgs] = CLI
  const candidates: [name: string, run: () => Promise<void>][] = [
    ['`POST /exec`, synchronous', () => boxwood.exec('true')],
    ['`POST /exec`, attached, with its WebSocket', () => runAttached(boxwood)],
    [
      '`box exec`, a new process',
      () => runProgram(program, [...cliArgs, 'exec', hostname, '--', 'true'], { env: cliEnv(boxwood) }),
    ],
    ['`node --eval ""`, part of `box exec`', () => runProgram(process.execPath, ['--eval', ''])],
  ]
  if (ssh)
    candidates.push([
      '`ssh`, a new process with an open connection through a tuned `ssh -R`',
      () => ssh.reverse.exec('true'),
    ])
  const samples = candidates.map(() => [] as number[])
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let round = 0; round < EXEC_ROUNDS; round++)
    for (const [index, [, run]] of candidates.entries()) {
      await measureRuns(WARM_UP_RUNS, 1, run)
      samples[index]?.push(...(await measureRuns(EXEC_RUNS, 1, run)))
    }
  const base = median(samples[0] ?? [])
  return {
    title: 'One attached command: `true`',
    columns: ['', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ synchronous'],
    rows: candidates.map(([name], index) => {
      const ms = samples[index] ?? []
      return [
        name,
        formatNumber(median(ms)),
        formatNumber(quantile(ms, 0.99)),
        formatNumber(median(ms) / base),
      ]
    }),
  }
}

const STDIN_COMMAND = 'cat >/dev/null'
const STDOUT_COMMAND = `head -c ${SIZE_MIB}M /dev/zero`

async function benchThroughput(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table> {
  const box = ['exec', boxwood.box.hostname, '--']
  const candidates: { name: string; command: (remote: string) => string[]; env: NodeJS.ProcessEnv }[] = [
    { name: '`box exec`', command: (remote) => [...CLI, ...box, remote], env: cliEnv(boxwood) },
  ]
  if (ssh)
    candidates.push({
      name: '`ssh` through a tuned `ssh -R`',
      command: (remote) => ssh.reverse.commandLine(remote),
      env: process.env,
    })
  const results = candidates.map(() => ({ stdin: [] as number[], stdout: [] as number[] }))
  const throughputOf = async (work: () => Promise<void>) => (SIZE_MIB * 1000) / (await measureDuration(work))
  for (let run = 0; run < THROUGHPUT_RUNS; run++)
    for (const [index, { command, env }] of candidates.entries()) {
      await assertStdinArrives(command(`wc -c`), env)
      results[index]?.stdin.push(
        await throughputOf(() => runShell(`${STDOUT_COMMAND} | "$@"`, command(STDIN_COMMAND), env)),
      )
      results[index]?.stdout.push(
        await throughputOf(() => runShell('"$@" >/dev/null </dev/null', command(STDOUT_COMMAND), env)),
      )
    }
  const [base] = results
  return {
    title: 'Throughput of stdin and stdout, 1 GiB (MiB/s)',
    columns: ['', 'stdin', 'stdout', 'Boxwood ÷ this, stdin', 'Boxwood ÷ this, stdout'],
    rows: candidates.map(({ name }, index) => {
      const stdin = median(results[index]?.stdin ?? [])
      const stdout = median(results[index]?.stdout ?? [])
      return [
        name,
        formatNumber(stdin),
        formatNumber(stdout),
        formatNumber(median(base?.stdin ?? []) / stdin),
        formatNumber(median(base?.stdout ?? []) / stdout),
      ]
    }),
  }
}

/** @param script runs the command as "$@" */
const runShell = (script: string, command: string[], env: NodeJS.ProcessEnv): Promise<void> =>
  runProgram('sh', ['-c', script, 'sh', ...command], { env })

/** Throws when a client discards stdin, whose throughput would then be unlimited. */
async function assertStdinArrives([program = '', ...args]: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(Buffer.alloc(100_000))
  const output = Buffer.concat(await child.stdout.toArray())
    .toString()
    .trim()
  if (output !== '100000') throw new Error(`${args.join(' ')} received ${output} of 100000 bytes of stdin`)
}
