// Without a C compiler the runner is a shell script: the tests of detached processes, with that runner.
process.env.BOXWOOD_RUNNER = 'sh'
await import('./start.test.ts')
await import('./kill.test.ts')
await import('./signal.test.ts')
await import('./agent-restart.test.ts')
await import('./output-times.test.ts')
