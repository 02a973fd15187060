// The commands of a page for coding agents.

/** The lines of the sh blocks that run box, without comments. */
export const listBoxCommands = (text: string): string[] =>
  [...text.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block
      .split('\n')
      .map((line) => line.replace(/ +#.*$/, ''))
      .filter((line) => line.startsWith('box ')),
  )
