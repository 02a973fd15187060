// Attached commands with the shell runner.
process.env.BOXWOOD_RUNNER = 'sh'
await import('./attached.test.ts')
