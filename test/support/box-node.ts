// Runs JavaScript on a box.

/** @param script without single quotes. @returns a shell command */
export const boxNode = (script: string): string =>
  // The first path is that in boxes with their own view of the file system.
  `node=/run/boxwood/bin/node; [ -x "$node" ] || node='${process.execPath}'; exec "$node" -e '${script}'`
