"""Every prototype in a header stands under a comment, alone or in a block of its kin."""
import glob, re, sys
bad = 0
for path in sorted(glob.glob("collector/**/*.h", recursive=True) + glob.glob("sinks/*.h") + glob.glob("queries/*.h")):
    above = "blank"  # what the current block of lines began with
    for n, line in enumerate(open(path), 1):
        text = line.strip()
        if not text:
            above = "blank"
        elif text.startswith(("/*", "*")) and above != "code":
            above = "comment"
        elif re.match(r"(?!typedef|return|static|extern|enum \w* \{|struct \w* \{|#|\})[a-z].*\(.*", line) and above == "blank":
            print(f"{path}:{n}: prototype without a comment: {text[:60]}")
            bad = 1
sys.exit(bad)
