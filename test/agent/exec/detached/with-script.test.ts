// Where no compiler was, a shell script is the runner: what a user notices of a detached command, once more.
process.env.BOXWOOD_RUNNER = 'sh'
await import('./start.test.ts')
await import('./kill.test.ts')
await import('./restart.test.ts')
