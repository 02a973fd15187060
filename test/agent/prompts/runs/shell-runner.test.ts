// Without a C compiler the runner of the coding agents is a shell script: the tests of runs, with that runner.
process.env.BOXWOOD_RUNNER = 'sh'
await import('./runs.test.ts')
await import('./interrupt.test.ts')
await import('./hostile.test.ts')
