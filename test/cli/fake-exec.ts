// Runs the synchronous command of a fake box in a shell on this machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import type { ExecRequest } from '../../shared/api/exec.ts'

/** As on a box, kills the command when the client disconnects. */
export async function runLocally(request: ExecRequest, homeDir: string, response: ServerResponse) {
  const startedAt = new Date().toISOString()
  const child = spawn('sh', ['-c', request.command], {
    cwd: resolve(homeDir, request.cwd ?? ''),
    env: { ...process.env, HOME: homeDir, ...request.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const kill = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGKILL')
  response.once('close', kill)
  let timedOut = false
  const timer = setTimeout(
    () => {
      timedOut = true
      kill()
    },
    (request.timeoutSeconds ?? 30) * 1000,
  )
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  const [exitCode, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(timer)
  response.off('close', kill)
  return {
    ok: true,
    type: 'exec.result',
    exitCode,
    signal: signal?.slice(3) ?? null,
    ...output,
    stdoutTruncated: false,
    stderrTruncated: false,
    timedOut,
    startedAt,
    finishedAt: startedAt,
    cwd: request.cwd ?? '~',
  }
}
