// The last line of a process: why it exits. Written synchronously, on every path that JavaScript sees. A SIGKILL and a crash of the
// process leave none: its parent, or the next start, reports them.

/**
 * Signals that would end the process without a line. Not SIGUSR1, with which Node opens its inspector, and SIGPROF, which V8
 * uses; Node ignores SIGPIPE and SIGXFSZ.
 */
export const STRAY_SIGNALS = [
  'SIGQUIT',
  'SIGUSR2',
  'SIGALRM',
  'SIGVTALRM',
  'SIGXCPU',
  'SIGIO',
  'SIGPWR',
  'SIGSTKFLT',
] as const satisfies NodeJS.Signals[]

export type Exit = { exitCode: number; reason: string }

export type ExitReport = {
  /** The last reason counts. */
  setReason(reason: string): void
}

/** @param write called once, when the process exits; it must write synchronously */
export function reportExit(write: (exit: Exit) => void): ExitReport {
  let reason = 'nothing was left to do'
  // Node prints the stack afterwards. A monitor does not handle the error: the process exits.
  process.on('uncaughtExceptionMonitor', (error: unknown, origin) => {
    const what = origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception'
    reason = `${what}: ${error instanceof Error ? error.message : String(error)}`
  })
  process.on('exit', (exitCode) => write({ exitCode, reason }))
  return {
    setReason(next) {
      reason = next
    },
  }
}
