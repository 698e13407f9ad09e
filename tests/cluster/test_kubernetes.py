"""Checks the manifests of bench/cluster and the container file: they match the schema of Kubernetes, their
numbers agree, and the commands of their pods, which run here without a cluster, measure each case once."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import PROGRAM, ProgramTest, call, read_rows, run

try:
    import yaml
except ImportError:
    yaml = None
try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CLUSTER = os.path.join(ROOT, "bench", "cluster")
SWEEP = ["-T", "2:5:+1", "-B", "1,2", "-H", "8", "--impl", "cpu_ref,cpu_simd"]


def manifest(name):
    with open(os.path.join(CLUSTER, name), encoding="utf-8") as file:
        return yaml.safe_load(file)


def pod_of(job):
    return job["spec"]["template"]["spec"]


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Manifests(ProgramTest):
    def call_pod(self, name, sweep=None, **environment):
        """Runs the command of the manifest's container with /sweep in the scratch folder."""
        container = pod_of(manifest(name))["containers"][0]
        words = [word.replace("/sweep", self.path("sweep")) for word in container["command"]]
        declared = {entry["name"]: entry["value"] for entry in container.get("env", [])}
        declared["PATH"] = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
        return call(*words, *(sweep or container["args"]), env={**os.environ, **declared, **environment})

    def test_numbers_and_names_agree(self):
        job = manifest("kubernetes.yaml")
        spec, pod = job["spec"], pod_of(job)
        container = pod["containers"][0]
        shards = {entry["name"]: entry["value"] for entry in container["env"]}["SHARDS"]
        self.assertEqual(spec["completionMode"], "Indexed") # else there is no JOB_COMPLETION_INDEX
        self.assertEqual([str(spec["completions"]), str(spec["parallelism"])], 2 * [shards])
        self.assertEqual(pod["restartPolicy"], "Never") # a podFailurePolicy needs it
        for rule in spec["podFailurePolicy"]["rules"]:
            self.assertEqual(rule.get("onExitCodes", {}).get("containerName", container["name"]), container["name"])
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]},
                         {each["name"] for each in pod["volumes"]})

    def test_the_pods_measure_each_case_once_and_are_merged(self):
        self.write("sweep/shards/2/run.jsonl", '{"kind":"header","sch') # cut by a full disk
        for index in range(2):
            for _ in range(2 if index == 0 else 1): # a pod that replaces another one continues the run
                done = self.call_pod("kubernetes.yaml", SWEEP + ["--case-time", "0.02"],
                                     JOB_COMPLETION_INDEX=str(index), SHARDS="2")
                self.assertIn(done.returncode, (0, 5), done.stderr)
        done = self.call_pod("kubernetes-merge.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = run("--list", "--format", "json", *SWEEP)
        rows = read_rows(self.path("sweep/merged"))
        self.assertEqual(set(rows), {case["case"] for case in json.loads(whole.stdout)["cases"]})
        self.assertEqual(len(rows), 16)
        self.assertTrue(os.path.exists(self.path("sweep/report.html")))

    def test_the_program_takes_the_cases_of_the_manifest(self):
        args = pod_of(manifest("kubernetes.yaml"))["containers"][0]["args"]
        self.assertEqual(run("--plan", *args).returncode, 0)

    @unittest.skipUnless(kubernetes_validate, "the Python module kubernetes-validate is not installed")
    def test_the_manifests_fit_the_schema(self):
        for name in ("kubernetes.yaml", "kubernetes-merge.yaml"):
            kubernetes_validate.validate(manifest(name), "1.29", strict=True)
            broken = manifest(name)
            broken["spec"]["completionsMode"] = "Indexed"
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(broken, "1.29", strict=True)


class ContainerFile(ProgramTest):
    def test_what_it_names_exists(self):
        text, presets, packages = (self.read(os.path.join(ROOT, name)) for name in
                                   ("bench/Containerfile", "CMakePresets.json", "bench/packages.sh"))
        self.assertLessEqual(set(re.findall(r"--preset (\w+)", text)),
                             {preset["name"] for preset in json.loads(presets)["configurePresets"]})
        for variable in re.findall(r"\$(\w+_packages)", text):
            self.assertRegex(packages, rf"(?m)^{variable}=")
        # A build of the host is copied too, and CMake refuses its cache in another folder.
        self.assertLess(text.index("rm -rf build"), text.index("cmake --preset"))


if __name__ == "__main__":
    unittest.main()
