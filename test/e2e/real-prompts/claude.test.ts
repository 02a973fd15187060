// Prompts to the real Claude Code.
import { toolCall } from '../../support/model-server/replies.ts'
import { testPrompts } from './test-prompts.ts'

testPrompts({
  provider: 'claude',
  runCommand: (command) => toolCall('Bash', { command, description: 'test' }),
  installPackage: null,
  signInHint: /ANTHROPIC_API_KEY/,
  unknownModel: 'unknown-model',
  messages: { rejectedKey: /401.*Incorrect API key/, unknownModel: /unknown-model/ },
})
