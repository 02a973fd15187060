// All tools, in the order in which hosts list them.

import type { Grants, Tool, ToolFactory } from '../tool.ts'
import { createCreateBox, createListBoxes } from './boxes.ts'
import { createReadOutput, createRunCommand, createStopCommand } from './commands.ts'

const FACTORIES: readonly ToolFactory[] = [
  createListBoxes,
  createCreateBox,
  createRunCommand,
  createReadOutput,
  createStopCommand,
]

export const listTools = (grants: Grants): Tool[] =>
  FACTORIES.flatMap((create) => {
    const tool = create(grants)
    return tool === null ? [] : [tool]
  })
