// The tests of restarts of the agent, with the shell runner.
process.env.BOXWOOD_RUNNER = 'sh'
await import('./agent-restart.test.ts')
