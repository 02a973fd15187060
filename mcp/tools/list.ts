// All tools, in the order in which hosts list them.

import type { Grants, Tool, ToolFactory } from '../tool.ts'
import { createCreateBox, createListBoxes } from './boxes.ts'
import { createChangeBox } from './change-box.ts'
import { createReadOutput, createRunCommand, createStopCommand } from './commands.ts'
import { createListFiles, createReadFile, createWriteFile } from './files.ts'
import { createSharePort } from './ports.ts'
import { createPromptAgent, createReadPrompt } from './prompts.ts'

const FACTORIES: readonly ToolFactory[] = [
  createListBoxes,
  createCreateBox,
  createRunCommand,
  createReadOutput,
  createStopCommand,
  createListFiles,
  createReadFile,
  createWriteFile,
  createSharePort,
  createPromptAgent,
  createReadPrompt,
  createChangeBox,
]

export const listTools = (grants: Grants): Tool[] =>
  FACTORIES.flatMap((create) => {
    const tool = create(grants)
    return tool === null ? [] : [tool]
  })
